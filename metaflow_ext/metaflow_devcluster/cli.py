"""The command line: metaflow-devcluster up | down | status | logs | env | run | evict | node | queue."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from . import lifecycle, playing
from .api.quantities import quantity
from .controllers import delays
from .lifecycle import Home, LifecycleError, Options

Object = dict[str, Any]
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parsed = parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except LifecycleError as error:
        print(f"metaflow-devcluster: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="metaflow-devcluster",
        description="A Kubernetes for one machine, for Metaflow: pods are local processes.",
        epilog="State is kept in $METAFLOW_DEVCLUSTER_HOME, by default ~/.metaflow-devcluster.",
    )
    commands = found.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        return command

    _add_options(add("up", _up, "Start the cluster in the background."))
    add("down", _down, "Stop the cluster and every process of it.")
    add("status", _status, "Show nodes, pods and jobs.")
    logs = add("logs", _logs, "Show the log of the server, or of a pod.")
    logs.add_argument("pod", nargs="?", help="name of a pod; without it the log of the server is shown")
    logs.add_argument("-n", "--namespace", default="default", help="of the pod (default: default)")
    logs.add_argument("-c", "--container", help="one of several containers")
    logs.add_argument("--previous", action="store_true", help="the run before the last restart")
    add("env", _env, "Print the variables that make Metaflow and kubectl use the cluster: eval $(... env).")
    run = add("run", _run, "Run a command with a cluster of its own, which ends with it.")
    _add_options(run)
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="the command to run")
    playing.add_commands(add)
    serve = commands.add_parser("serve")  # what `up` starts
    serve.add_argument("--options", required=True)
    serve.add_argument("--lifeline", action="store_true")
    serve.set_defaults(run=_serve)
    return found


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--nodes", type=_positive, default=1, help="number of nodes (default: 1)")
    command.add_argument("--node-cpu", type=_amount, help="CPUs that each node offers (default: at least 32)")
    command.add_argument("--node-memory", type=_amount, help="memory that each node offers (default: at least 128Gi)")
    command.add_argument(
        "--delays",
        choices=sorted(delays.BY_NAME),
        default="none",
        help="whether controllers wait as real ones do (default: none)",
    )
    command.add_argument("--port", type=_port, default=0, help="port on 127.0.0.1 (default: a free one)")


def _positive(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000")
    return int(text)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _amount(text: str) -> str:
    try:
        is_positive = quantity(text) > 0
    except ValueError:
        is_positive = False
    if not is_positive:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount like 4, 500m or 16Gi")
    return text


def _options(parsed: argparse.Namespace) -> Options:
    return Options(
        nodes=parsed.nodes,
        node_cpu=parsed.node_cpu,
        node_memory=parsed.node_memory,
        delays=parsed.delays,
        port=parsed.port,
    )


# -- commands


def _up(parsed: argparse.Namespace) -> int:
    home = Home.default()
    started, _ = lifecycle.up(home, _options(parsed))
    print("The cluster is running." if started else "The cluster is already running.")
    print(f"kubeconfig: {home.kubeconfig}")
    print("To use it in this shell: eval $(metaflow-devcluster env)")
    return 0


def _down(parsed: argparse.Namespace) -> int:
    was_running = lifecycle.down(Home.default())
    print("The cluster has been stopped." if was_running else "The cluster was not running.")
    return 0


def _env(parsed: argparse.Namespace) -> int:
    home = Home.default()
    if not home.path.exists() or not home.is_running():
        raise LifecycleError("The cluster is not running; start it with: metaflow-devcluster up")
    for name, value in home.environment().items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def _status(parsed: argparse.Namespace) -> int:
    home = Home.default()
    state = home.state()
    nodes = _items(home, "/api/v1/nodes")
    print(f"Running as process {state['pid']} since {state['started']}, kubeconfig: {home.kubeconfig}")
    _print_table(["NODE", "READY", "CPU", "MEMORY", "PODS"], [node_row(node) for node in nodes])
    jobs = [job_row(job) for job in _items(home, "/apis/batch/v1/jobs")]
    jobs += [jobset_row(jobset) for jobset in _items(home, "/apis/jobset.x-k8s.io/v1alpha2/jobsets")]
    _print_table(["JOB", "NAMESPACE", "STATE", "ACTIVE", "SUCCEEDED", "FAILED"], jobs)
    pods = [pod_row(pod) for pod in _items(home, "/api/v1/pods")]
    _print_table(["POD", "NAMESPACE", "PHASE", "NODE", "ADDRESS", "REASON"], pods)
    return 0


def _logs(parsed: argparse.Namespace) -> int:
    home = Home.default()
    if not parsed.pod:
        if not home.log.exists():
            raise LifecycleError(f"There is no log at {home.log}.")
        sys.stdout.write(home.log.read_text(errors="replace"))
        return 0
    query = {"container": parsed.container, "previous": "true" if parsed.previous else None}
    given = urllib.parse.urlencode({key: value for key, value in query.items() if value})
    path = f"/api/v1/namespaces/{parsed.namespace}/pods/{parsed.pod}/log"
    sys.stdout.buffer.write(lifecycle.request(home, f"{path}?{given}"))
    return 0


def _run(parsed: argparse.Namespace) -> int:
    command = parsed.command[1:] if parsed.command[:1] == ["--"] else parsed.command
    if not command:
        raise LifecycleError("Say what to run: metaflow-devcluster run -- COMMAND ...")
    if shutil.which(command[0]) is None:
        raise LifecycleError(f"There is no program {command[0]!r}.")
    home = Home(Path(tempfile.mkdtemp(prefix="metaflow-devcluster-")))
    try:
        _, server = lifecycle.up(home, _options(parsed), lifeline=True)
        code = _run_command(command, {**os.environ, **home.environment()})
        lifecycle.down(home)
        if server is not None:
            server.wait()
            if server.stdin:
                server.stdin.close()
        return code
    finally:
        shutil.rmtree(home.path, ignore_errors=True)


def _run_command(command: list[str], environment: dict[str, str]) -> int:
    """Run it in the foreground; signals go on to it, except those that the terminal has sent it already."""
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # the command may run, and be told of, before Popen has returned

    def forward(number: int, frame: FrameType | None) -> None:
        if number in (signal.SIGINT, signal.SIGQUIT) and _in_foreground():
            return
        if process is None:
            early.append(number)
        else:
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        process = subprocess.Popen(command, env=environment)
        for number in early:
            process.send_signal(number)
        code = process.wait()
    except OSError as error:
        raise LifecycleError(f"{command[0]} can not be run: {error.strerror}.") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _in_foreground() -> bool:
    """Whether a terminal sends its signals to this process group, and so to the command as well."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _serve(parsed: argparse.Namespace) -> int:
    from .__main__ import serve  # the server's imports take a moment that no other command needs

    return serve(Home.default(), Options(**json.loads(parsed.options)), lifeline=parsed.lifeline)


# -- rows


def _items(home: Home, path: str) -> list[Object]:
    found: list[Object] = json.loads(lifecycle.request(home, path))["items"]
    return found


def node_row(node: Object) -> list[str]:
    room = node["status"]["allocatable"]
    ready = next((c["status"] for c in node["status"].get("conditions", []) if c["type"] == "Ready"), "Unknown")
    return [node["metadata"]["name"], ready, room["cpu"], room["memory"], room["pods"]]


def pod_row(pod: Object) -> list[str]:
    status, meta = pod.get("status") or {}, pod["metadata"]
    reason = status.get("reason", "")
    for container in status.get("containerStatuses") or []:
        for state in (container.get("state") or {}).values():
            reason = reason or state.get("reason", "")
    phase = "Terminating" if meta.get("deletionTimestamp") else status.get("phase", "")
    where = pod["spec"].get("nodeName", "")
    return [meta["name"], meta["namespace"], phase, where, status.get("podIP", ""), reason]


def job_row(job: Object) -> list[str]:
    status = job.get("status") or {}
    counts = [str(status.get(key, 0)) for key in ("active", "succeeded", "failed")]
    return [job["metadata"]["name"], job["metadata"]["namespace"], _state(status), *counts]


def jobset_row(jobset: Object) -> list[str]:
    status = jobset.get("status") or {}
    parts = status.get("replicatedJobsStatus") or []
    counts = [str(sum(part.get(key, 0) for part in parts)) for key in ("active", "succeeded", "failed")]
    return [f"jobset/{jobset['metadata']['name']}", jobset["metadata"]["namespace"], _state(status), *counts]


def _state(status: Object) -> str:
    true = [entry["type"] for entry in status.get("conditions") or [] if entry["status"] == "True"]
    return true[-1] if true else "Active"


def _print_table(header: list[str], rows: list[list[str]]) -> None:
    if not rows:
        return
    print()
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        print("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def started_now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")
