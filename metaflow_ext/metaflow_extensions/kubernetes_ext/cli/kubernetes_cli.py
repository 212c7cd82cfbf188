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


@kubernetes.command(help="List unfinished Kubernetes tasks of this flow.")
@click.option("--my-runs", default=False, is_flag=True, help="List all my unfinished tasks.")
@click.option("--user", default=None, help="List unfinished tasks for the given user.")
@click.option("--run-id", default=None, help="List unfinished tasks corresponding to the run id.")
@click.option("--json", "as_json", default=False, is_flag=True, help="Print JSON.")
@click.pass_obj
def list(obj: Any, run_id: str | None, user: str | None, my_runs: bool, as_json: bool) -> None:
    from .workloads_command import list_workloads

    list_workloads(obj, run_id, user, my_runs, as_json)


@kubernetes.command(
    help="Terminate unfinished Kubernetes tasks of this flow. Killed tasks may result in newer attempts when using @retry."
)
@click.option("--my-runs", default=False, is_flag=True, help="Kill all my unfinished tasks.")
@click.option("--user", default=None, help="Terminate unfinished tasks for the given user.")
@click.option("--run-id", default=None, help="Terminate unfinished tasks corresponding to the run id.")
@click.pass_obj
def kill(obj: Any, run_id: str | None, user: str | None, my_runs: bool) -> None:
    from .workloads_command import kill_workloads

    kill_workloads(obj, run_id, user, my_runs)
