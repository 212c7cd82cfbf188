"""The click commands of `python flow.py kubernetes`. Metaflow imports this in every process: what is heavy is imported
inside of the commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from metaflow import JSONTypeClass
from metaflow._vendor import click
from metaflow.tracing import cli as traced
from metaflow.unbounded_foreach import UBF_CONTROL, UBF_TASK

from ..decorators import attributes

_FORMS: Any = {
    attributes.TEXT: {"default": None},
    attributes.JSON: {"default": None, "type": JSONTypeClass()},
    attributes.PAIRS: {"default": None, "multiple": True},
    attributes.REPEATED: {"default": None, "multiple": True},
    attributes.FLAG: {"is_flag": True},
}


@click.group()
def cli() -> None:
    pass


@cli.group(help="Commands related to Kubernetes.")
def kubernetes() -> None:
    pass


def _attribute_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """One option for each attribute of @kubernetes."""
    for name, form in {**attributes.CORE, **attributes.OURS}.items():
        option = "--" + attributes.option_name(name).replace("_", "-")
        command = click.option(option, help=f"Attribute {name} of @kubernetes.", **_FORMS[form])(command)
    return command


@kubernetes.command(
    help="Execute a single task on Kubernetes. This command calls the top-level step command inside a Kubernetes pod "
    "with the given options. Typically you do not call this command directly; it is used internally by Metaflow."
)
@traced("kubernetes/step")
@click.argument("step-name")
@click.argument("code-package-metadata")
@click.argument("code-package-sha")
@click.argument("code-package-url")
@_attribute_options
@click.option("--run-id", help="Passed to the top-level 'step'.")
@click.option("--task-id", help="Passed to the top-level 'step'.")
@click.option("--input-paths", help="Passed to the top-level 'step'.")
@click.option("--split-index", help="Passed to the top-level 'step'.")
@click.option("--clone-path", help="Passed to the top-level 'step'.")
@click.option("--clone-run-id", help="Passed to the top-level 'step'.")
@click.option("--tag", multiple=True, default=None, help="Passed to the top-level 'step'.")
@click.option("--namespace", default=None, help="Passed to the top-level 'step'.")
@click.option("--retry-count", default=0, help="Passed to the top-level 'step'.")
@click.option("--max-user-code-retries", default=0, help="Passed to the top-level 'step'.")
@click.option("--run-time-limit", default=5 * 24 * 60 * 60, help="Run time limit in seconds for every pod.")
@click.option("--hostname-resolution-timeout", default=10 * 60, help="Seconds that workers wait for control's name.")
@click.option("--ubf-context", default=None, type=click.Choice([None, UBF_CONTROL, UBF_TASK]))
@click.option("--num-parallel", default=None, type=int, help="Number of ranks of a @parallel step.")
@click.pass_context
def step(
    ctx: Any, step_name: str, code_package_metadata: str, code_package_sha: str, code_package_url: str, **options: Any
) -> None:
    from .step_command import run_step

    package = (code_package_metadata, code_package_sha, code_package_url)
    sys.exit(run_step(ctx.obj, ctx.parent.parent.params, os.path.basename(sys.argv[0]), step_name, package, options))


_JSON = click.option("--json", "as_json", default=False, is_flag=True, help="Print JSON.")
_TARGET = click.argument("target", metavar="RUN[/STEP[/TASK]]")


@kubernetes.command(help="List unfinished Kubernetes tasks of this flow.")
@click.option("--my-runs", default=False, is_flag=True, help="List all my unfinished tasks.")
@click.option("--user", default=None, help="List unfinished tasks for the given user.")
@click.option("--run-id", default=None, help="List unfinished tasks corresponding to the run id.")
@click.option("--all-runs", default=False, is_flag=True, help="Those of all runs and users.")
@click.option("--finished", default=False, is_flag=True, help="Also the finished ones that are still in the cluster.")
@click.option(
    "--orphans", default=False, is_flag=True, help="Those of all runs whose step process is gone: nothing follows or ends them."
)
@click.option("-l", "--selector", "label_selector", default="", help="Further label selector, as kubectl takes it.")
@_JSON
@click.pass_obj
def list(
    obj: Any,
    run_id: str | None,
    user: str | None,
    my_runs: bool,
    all_runs: bool,
    finished: bool,
    orphans: bool,
    label_selector: str,
    as_json: bool,
) -> None:
    from .workloads_command import Wanted, list_workloads

    wanted = Wanted(
        run_id=run_id, user=user, is_mine=my_runs, is_all=all_runs, with_finished=finished, only_orphans=orphans,
        selector=label_selector,
    )  # fmt: skip
    list_workloads(obj, wanted, as_json)


@kubernetes.command(
    help="Terminate unfinished Kubernetes tasks of this flow: of a run, a step or a task. Killed tasks may result in newer "
    "attempts when using @retry."
)
@click.option("--my-runs", default=False, is_flag=True, help="Kill all my unfinished tasks.")
@click.option("--user", default=None, help="Terminate unfinished tasks for the given user.")
@click.option("--run-id", default=None, help="Terminate unfinished tasks corresponding to the run id.")
@click.argument("target", metavar="[RUN[/STEP[/TASK]]]", required=False)
@_JSON
@click.pass_obj
def kill(obj: Any, target: str | None, run_id: str | None, user: str | None, my_runs: bool, as_json: bool) -> None:
    from .workloads_command import kill_workloads

    kill_workloads(obj, target, run_id, user, my_runs, as_json)


@kubernetes.command(help="Show a workload and each of its ranks as they are now.")
@_TARGET
@click.option("--watch", is_flag=True, help="Show how far it is until it has ended, in one line that is refreshed.")
@_JSON
@click.pass_obj
def describe(obj: Any, target: str, watch: bool, as_json: bool) -> None:
    if watch:
        from .watch_command import watch as follow

        follow(obj, target)
        return
    from .describe_command import describe

    describe(obj, target, as_json)


@kubernetes.command(help="List what Kubernetes has noted about a workload, its Jobs and its pods, the oldest first.")
@_TARGET
@_JSON
@click.pass_obj
def events(obj: Any, target: str, as_json: bool) -> None:
    from .events_command import events

    events(obj, target, as_json)


@kubernetes.command(help="Say why a task waits or has failed, from the cluster or from what its run has left in the metadata.")
@_TARGET
@_JSON
@click.pass_obj
def why(obj: Any, target: str, as_json: bool) -> None:
    from .describe_command import why

    why(obj, target, as_json)


@kubernetes.command(help="Show where every rank of what runs stands in its Python code now, and which one stands apart.")
@_TARGET
@click.option("--timeout", default=60.0, type=click.FloatRange(min=1), help="Seconds to wait for the ranks' answers.")
@_JSON
@click.pass_obj
def stacks(obj: Any, target: str, timeout: float, as_json: bool) -> None:
    from .stacks_command import stacks

    stacks(obj, target, timeout, as_json)


@kubernetes.command(
    help="Print a workload's object as it was posted; with --step, as it would be, with placeholders for what only a run knows."
)
@click.argument("target", metavar="[RUN[/STEP[/TASK]]]", required=False)
@click.option("--step", default=None, help="A step of this flow, before a run.")
@click.option("--num-parallel", default=None, type=click.IntRange(min=1), help="Number of ranks, of a @parallel step.")
@click.option(
    "--validate", default=False, is_flag=True, help="Have the server look at it, at its Jobs and at a pod of each (dry run)."
)
@click.option("--explain", default=False, is_flag=True, help="Which attribute each field is from, and who has set that.")
@_JSON
@click.pass_obj
def manifest(
    obj: Any, target: str | None, step: str | None, num_parallel: int | None, validate: bool, explain: bool, as_json: bool
) -> None:
    from .manifest_command import manifest_of_step, manifest_of_workload

    if (target is None) == (step is None):
        raise click.UsageError("Give either RUN[/STEP[/TASK]] or --step.")
    if step is None and (validate or explain):
        raise click.UsageError("--validate and --explain are about a --step.")
    if step is not None:
        manifest_of_step(obj, step, num_parallel, validate, explain, as_json)
    elif target is not None:
        manifest_of_workload(obj, target, as_json)


@kubernetes.command(
    help="Print what the ranks have written, in the order of time: from their pods, else from what Metaflow has kept."
)
@_TARGET
@click.option("--rank", "ranks", default="all", help="control, all, or ranks such as 0,3.")
@click.option("--since", default=None, help="90s, 5m, 2h or 1d ago, or an RFC 3339 time stamp.")
@click.option("--tail", default=None, type=click.IntRange(min=1), help="The last lines of each rank.")
@click.option("--grep", default=None, help="Only lines that match this regular expression.")
@click.option("--previous", default=False, is_flag=True, help="Of the attempt before the last.")
@click.option("-f", "--follow", default=False, is_flag=True, help="Go on until the workload has ended.")
@click.pass_obj
def logs(
    obj: Any, target: str, ranks: str, since: str | None, tail: int | None, grep: str | None, previous: bool, follow: bool
) -> None:
    from .logs_command import logs

    logs(obj, target, ranks, since, tail, grep, previous, follow)


@kubernetes.command(
    help="Write what can be watched of a workload to a file for a bug report, without values of variables and commands."
)
@_TARGET
@click.option("-o", "--output", required=True, help="The file, JSON lines.")
@click.pass_obj
def record(obj: Any, target: str, output: str) -> None:
    from .record_command import record

    record(obj, target, output)


@kubernetes.command(
    help="Show what the ranks of a run's workloads write and what happens to them until they have ended: for a run whose client "
    "was killed. Ctrl-C detaches, the workloads go on."
)
@_TARGET
@click.option("--logs", "ranks", default="control", help="The ranks whose output is shown: control, all, none or 0,3.")
@click.pass_obj
def attach(obj: Any, target: str, ranks: str) -> None:
    from .attach_command import attach

    sys.exit(attach(obj, target, ranks))


@kubernetes.command(help="Before a run: look for what its steps need of the cluster, and say what is missing.")
@click.option(
    "--probe",
    default=False,
    is_flag=True,
    help="Also start a pod as each step would have it: image, Python, secrets, datastore.",
)
@click.option(
    "--probe-seconds", default=300.0, type=click.FloatRange(min=10), help="How long probes may take, an image's pull included."
)
@_JSON
@click.pass_obj
def check(obj: Any, probe: bool, probe_seconds: float, as_json: bool) -> None:
    from .check_command import check

    check(obj, probe, probe_seconds, as_json)
