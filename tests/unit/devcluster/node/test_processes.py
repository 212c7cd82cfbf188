"""Real processes: that containers run, end as they should, and never outlive their node."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from metaflow_devcluster.api.admission import Admission
from metaflow_devcluster.api.agent import LogOptions
from metaflow_devcluster.cluster import Cluster
from metaflow_devcluster.controllers import delays
from metaflow_devcluster.controllers.control_plane import control_plane
from metaflow_devcluster.controllers.manager import utc_now
from metaflow_devcluster.node.agent import Agent
from metaflow_devcluster.node.process import End, Launch, Shim
from metaflow_devcluster.resources import jobset_resource, served_resources
from metaflow_devcluster.store import Store

Object = dict[str, Any]
PATIENCE = 60.0
ENV = {"PATH": os.environ["PATH"]}
IS_LINUX = sys.platform.startswith("linux")
linux_only = pytest.mark.skipif(not IS_LINUX, reason="needs /proc")


async def run_shim(tmp_path: Path, command: list[str], **fields: Any) -> tuple[End, str]:
    log = tmp_path / "log"
    shim = Shim(Launch(command=command, env=ENV, cwd=str(tmp_path), log=str(log), **fields))
    end = await asyncio.wait_for(shim.ended, PATIENCE)
    return end, log.read_text() if log.exists() else ""


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not collected yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.02)
    return found


async def text(log: AsyncIterator[bytes]) -> str:
    return b"".join([piece async for piece in log]).decode()


def go(work: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await work

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [("exit 0", 0, 0), ("exit 42", 42, 0), ("kill -9 $$", 137, 9), ("kill -TERM $$", 143, 15)],
)
def test_exit_codes_and_signals(tmp_path: Path, script: str, code: int, number: int) -> None:
    end, _ = go(run_shim(tmp_path, ["sh", "-c", script]))
    assert (end.code, end.signal, end.failure) == (code, number, "")


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    end, _ = go(run_shim(tmp_path, ["no-such-program"]))
    assert end.code == 128
    assert 'exec: "no-such-program": executable file not found in $PATH' in end.failure


def test_lines_are_logged_with_their_time(tmp_path: Path) -> None:
    _, log = go(run_shim(tmp_path, ["sh", "-c", "echo one; echo two >&2; printf three"]))
    assert [line.split(" ", 2)[2] for line in log.splitlines()] == ["F one", "F two", "P three"]
    assert all(line.startswith("20") for line in log.splitlines())


@linux_only
def test_a_container_over_its_memory_limit_is_killed(tmp_path: Path) -> None:
    code = "x = bytearray(b'x' * 2**28); import time; time.sleep(60)"
    end, _ = go(run_shim(tmp_path, [sys.executable, "-c", code], memory=100 * 2**20))
    assert (end.code, end.out_of_memory) == (137, True)


@linux_only
def test_processes_that_left_their_session_end_with_the_container(tmp_path: Path) -> None:
    script = "setsid sh -c 'sleep 60 & echo $! > inner; wait' & echo $! > outer; sleep 0.3"
    go(run_shim(tmp_path, ["sh", "-c", script]))
    pids = [int((tmp_path / name).read_text()) for name in ("inner", "outer")]
    assert [is_alive(pid) for pid in pids] == [False, False]


@linux_only
def test_nothing_is_left_when_the_node_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM HUP; setsid sh -c 'sleep 60 & echo $! > inner; wait' & echo $$ > main; sleep 60"
    node = f"""
import asyncio, sys
from metaflow_devcluster.node.process import Launch, Shim
async def main():
    shim = Shim(Launch(command=["sh", "-c", {script!r}], env={ENV!r}, cwd={str(tmp_path)!r}, log={str(tmp_path / "log")!r}))
    print(shim.pid, flush=True)
    await shim.ended
asyncio.run(main())
"""
    source = str(Path(__file__).parents[4] / "metaflow_ext")
    process = subprocess.Popen(
        [sys.executable, "-c", node], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": source}
    )
    assert process.stdout
    with process, process.stdout:
        shim = int(process.stdout.readline())
        go(until(lambda: (tmp_path / "inner").exists() and (tmp_path / "inner").read_text().strip()))
        pids = [shim, *(int((tmp_path / name).read_text()) for name in ("main", "inner"))]
        assert all(map(is_alive, pids))
        process.send_signal(signal.SIGKILL)
        go(until(lambda: not any(map(is_alive, pids))))


# -- pods


@asynccontextmanager
async def cluster(tmp_path: Path) -> AsyncIterator[tuple[Cluster, Agent]]:
    store = Store(served_resources(jobset=jobset_resource()))
    found = Cluster(store, Admission(store))
    store.create("namespaces", {"metadata": {"name": "default"}, "spec": {"finalizers": ["kubernetes"]}})
    agent = Agent(store, tmp_path / "node", utc_now, delays.NONE, isolate=False)
    agent.prepare()
    tasks = [asyncio.create_task(control_plane(found, delays.NONE).run()), asyncio.create_task(agent.run())]
    await until(lambda: store.find("serviceaccounts", "default", "default"))
    try:
        yield found, agent
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def pod_of(script: str, name: str = "p", *, grace: int = 5, container: Object | None = None, **spec: Any) -> Object:
    main = {"name": "main", "image": "x", "command": ["sh", "-c", script], **(container or {})}
    fields = {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace, "containers": [main], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": fields}


def phase(store: Store, name: str = "p") -> str:
    return str(store.get("pods", "default", name)["status"].get("phase"))


def terminated(pod: Object) -> Object:
    found: Object = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return found


async def run_pod(tmp_path: Path, pod: Object) -> tuple[Object, str]:
    """A pod that ends by itself: its last state and its log."""
    async with cluster(tmp_path) as (found, agent):
        found.create("pods", pod)
        await until(lambda: phase(found.store) in ("Succeeded", "Failed"))
        last = found.store.get("pods", "default", "p")
        return last, await text(agent.read_log(last, LogOptions(container="main")))


def test_a_pod_runs_in_a_directory_and_environment_of_its_own(tmp_path: Path) -> None:
    pod, log = go(run_pod(tmp_path, pod_of("pwd; ls -A; echo $HOSTNAME; env | cut -d= -f1 | sort")))
    assert (pod["status"]["phase"], terminated(pod)["reason"]) == ("Succeeded", "Completed")
    directory, host, *names = log.splitlines()
    assert Path(directory).is_relative_to(tmp_path)
    assert host == "p"
    allowed = {
        "HOME",
        "HOSTNAME",
        "LANG",
        "LC_ALL",
        "TZ",
        "METAFLOW_KUBERNETES_SHARED_FILES",
        "PATH",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    }
    assert set(names) - {"PYTHONUSERBASE"} <= allowed


def test_python_is_the_interpreter_of_the_cluster(tmp_path: Path) -> None:
    code = "import sys, aiohttp; print(sys.executable)"
    _, log = go(run_pod(tmp_path, pod_of(f'python -c "{code}"; /usr/local/bin/python3 -V >/dev/null 2>&1 || true')))
    assert log == f"{sys.executable}\n"


def test_the_end_of_the_log_is_the_termination_message_of_a_failure(tmp_path: Path) -> None:
    policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    pod, _ = go(run_pod(tmp_path, pod_of("echo why; exit 3", container=policy)))
    assert (terminated(pod)["exitCode"], terminated(pod)["message"]) == (3, "why\n")


def test_a_volume_that_can_not_be_mounted_is_found_through_the_environment(tmp_path: Path) -> None:
    volume = {
        "volumeMounts": [{"name": "t", "mountPath": "/metaflow_temp"}],
        "env": [{"name": "T", "value": "/metaflow_temp/x"}],
    }
    pod, log = go(run_pod(tmp_path, pod_of("mkdir $T && echo $T", container=volume, volumes=[{"name": "t", "emptyDir": {}}])))
    assert pod["status"]["phase"] == "Succeeded"
    assert Path(log.strip()).is_relative_to(tmp_path)


def test_init_containers_come_first_and_share_volumes(tmp_path: Path) -> None:
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}], "env": [{"name": "V", "value": "/v"}]}
    init = {"name": "init", "image": "x", "command": ["sh", "-c", "echo first > $V/file"], **mount}
    volumes = [{"name": "v", "emptyDir": {}}]
    _, log = go(run_pod(tmp_path, pod_of("cat $V/file", container=mount, initContainers=[init], volumes=volumes)))
    assert log == "first\n"


def test_a_failed_container_is_restarted_in_place(tmp_path: Path) -> None:
    script = "[ -e $HOME/again ] && exit 0; touch $HOME/again; exit 1"
    pod, _ = go(run_pod(tmp_path, pod_of(script, restartPolicy="OnFailure")))
    status = pod["status"]["containerStatuses"][0]
    assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 1)


def test_a_pod_past_its_deadline(tmp_path: Path) -> None:
    pod, _ = go(run_pod(tmp_path, pod_of("sleep 60", activeDeadlineSeconds=1, grace=0)))
    assert (pod["status"]["phase"], pod["status"]["reason"], terminated(pod)["exitCode"]) == ("Failed", "DeadlineExceeded", 137)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("sleep 60 & touch READY; wait", 143, id="ends on TERM"),
        pytest.param("trap 'exit 7' TERM; touch READY; while :; do sleep 0.1; done", 7, id="handles TERM"),
        pytest.param("trap '' TERM; touch READY; while :; do sleep 0.1; done", 137, id="ignores TERM"),
    ],
)
def test_deletion_writes_the_end_before_the_object_goes(tmp_path: Path, script: str, code: int) -> None:
    async def main() -> list[Object]:
        async with cluster(tmp_path) as (found, _):
            store = found.store
            ready = tmp_path / "ready"
            found.create("pods", pod_of(script.replace("READY", str(ready)), grace=1 if code == 137 else 20))
            await until(ready.exists)
            with store.subscribe("pods") as changes:
                store.delete("pods", "default", "p")
                await until(lambda: store.find("pods", "default", "p") is None)
                return [change.object for change in changes.pending()]

    versions = go(main())
    ends = [terminated(pod)["exitCode"] for pod in versions if pod["status"]["phase"] == "Failed"]
    assert ends[0] == code
    assert len(ends) >= 2  # written, then removed


@pytest.mark.parametrize(
    ("image", "reason"),
    [("devcluster/does-not-exist:1", "ErrImagePull"), ("Not An Image", "InvalidImageName")],
)
def test_images_that_fail(tmp_path: Path, image: str, reason: str) -> None:
    async def main() -> set[str]:
        async with cluster(tmp_path) as (found, _):
            store = found.store
            with store.subscribe("pods") as changes:
                found.create("pods", pod_of("true", container={"image": image}))

                def waiting() -> Object:
                    status = store.get("pods", "default", "p")["status"].get("containerStatuses", [{}])[0]
                    found: Object = status.get("state", {}).get("waiting", {})
                    return found

                await until(lambda: waiting().get("reason") in (reason, "ImagePullBackOff"))
                states = [c.object["status"].get("containerStatuses", [{}])[0] for c in changes.pending()]
                return {state.get("state", {}).get("waiting", {}).get("reason") for state in states}

    assert reason in go(main())


def test_a_gang_finds_its_control_by_name_without_any_privilege(tmp_path: Path) -> None:
    """What core Metaflow does in every rank: gethostbyname of MF_MASTER_ADDR; and control listens on its own address."""
    name = {"name": "MF_MASTER_ADDR", "value": "g-control-0-0.g"}
    own = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    serve = (
        "import os, socket; s = socket.create_server((os.environ['POD_IP'], 7654)); "
        "assert socket.gethostbyname(os.environ['MF_MASTER_ADDR']) == os.environ['POD_IP']; "
        "[s.accept()[0].sendall(b'hello') for _ in range(3)]"
    )
    ask = (
        "import os, socket, time\n"
        "for _ in range(200):\n"
        "    try:\n"
        "        s = socket.create_connection((socket.gethostbyname(os.environ['MF_MASTER_ADDR']), 7654))\n"
        "        break\n"
        "    except ConnectionRefusedError:\n"
        "        time.sleep(0.05)\n"
        "print(s.recv(9).decode())\n"
    )

    def group(role: str, pods: int, code: str) -> Object:
        main = {"name": "main", "image": "x", "command": ["python", "-c", code], "env": [name, own]}
        template = {"spec": {"restartPolicy": "Never", "containers": [main]}}
        job = {"backoffLimit": 0, "parallelism": pods, "completions": pods, "template": template}
        return {"name": role, "replicas": 1, "template": {"spec": job}}

    async def main() -> list[str]:
        async with cluster(tmp_path) as (found, agent):
            jobset = {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {"name": "g", "namespace": "default"},
                "spec": {"replicatedJobs": [group("worker", 3, ask), group("control", 1, serve)]},
            }
            found.create("jobsets.jobset.x-k8s.io", jobset)
            store = found.store

            def state() -> Object:
                status: Object = store.get("jobsets.jobset.x-k8s.io", "default", "g").get("status") or {}
                return status

            await until(lambda: state().get("terminalState"))
            assert state()["terminalState"] == "Completed"
            assert len({pod["status"]["podIP"] for pod in store.list("pods")}) == (4 if IS_LINUX else 1)
            workers = [pod for pod in store.list("pods") if "worker" in pod["metadata"]["name"]]
            logs = [agent.read_log(pod, LogOptions(container="main")) for pod in workers]
            return [await text(log) for log in logs]

    assert go(main()) == ["hello\n"] * 3


def test_commands_run_beside_the_container_and_end_with_it(tmp_path: Path) -> None:
    async def main() -> tuple[bytes, int, int]:
        async with cluster(tmp_path) as (found, agent):
            store = found.store
            found.create("pods", pod_of("sleep 60", container={"env": [{"name": "A", "value": "1"}]}))
            await until(lambda: phase(store) == "Running")
            pod = store.get("pods", "default", "p")
            command = await agent.start(pod, "main", ["sh", "-c", "read x; echo $x-$A; exit 7"], stdin=True)
            await command.write(b"said\n")
            await command.write(b"")
            output = b""
            while (piece := await command.read()) is not None:
                output += piece[1]
            code = await command.wait()
            endless = await agent.start(pod, "main", ["sleep", "60"], stdin=False)
            await asyncio.sleep(0.5)
            store.delete("pods", "default", "p", grace_seconds=0)
            return output, code, await asyncio.wait_for(endless.wait(), PATIENCE)

    assert go(main()) == (b"said-1\n", 7, 137)


@linux_only
def test_a_signal_for_all_reaches_the_pod_and_nothing_else(tmp_path: Path) -> None:
    async def main() -> tuple[str, str]:
        async with cluster(tmp_path) as (found, agent):
            store = found.store
            for name in ("p", "other"):
                found.create("pods", pod_of("sleep 60", name))
                await until(lambda name=name: phase(store, name) == "Running")
            agent.signal(store.get("pods", "default", "p"), signal.SIGKILL)
            await until(lambda: phase(store) == "Failed")
            return phase(store), phase(store, "other")

    assert go(main()) == ("Failed", "Running")
