"""What a task's containers run: core's commands for the code package, and the step with its options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import dirname
from typing import Any

from metaflow.cli_args import cli_args

from ..decorators.container_script import TaskScript
from ..decorators.launch_spec import TaskCode, TaskRef
from ..decorators.package_commands import bootstrap_commands, init_commands
from ..decorators.shared_files import SHARED_FILES

_INPUT_PATHS_CHUNK = 30 * 1024  # characters of --input-paths in one variable
_PASSED_ON = ("run_id", "split_index", "clone_path", "clone_run_id", "tag", "retry_count")


@dataclass(frozen=True, kw_only=True)
class Package:
    metadata: str
    sha: str
    url: str


def task_code(
    task: TaskRef,
    *,
    flow_datastore: Any,
    environment: Any,
    decorators: Sequence[Any],
    package: Package,
    script_name: str,
    top_options: Mapping[str, Any],
    options: Mapping[str, Any],
) -> TaskCode:
    """`options` are those of `kubernetes step`; `top_options` those of the flow before it."""
    is_gang = task.num_parallel is not None
    paths = dict(_chunks(options.get("input_paths") or ""))
    datastore = flow_datastore.TYPE
    script = TaskScript(
        pathspec="/".join((task.flow, task.run_id, task.step, task.task_id)),
        attempt=task.attempt,
        datastore=datastore,
        datastore_root=flow_datastore.datastore_root,
        init_commands=init_commands(environment, package.url, package.metadata, datastore),
        bootstrap_commands=bootstrap_commands(environment, task.step, datastore),
        step_words=[
            environment.executable(task.step, options.get("executable")),
            "-u",
            script_name,
            *_top_words(top_options, flow_datastore),
            "step",
            task.step,
            *_step_words(options, is_gang, has_catch=any(deco.name == "catch" for deco in decorators)),
        ],
        input_paths=list(paths),
    )
    return TaskCode(
        script=script,
        environment={
            "METAFLOW_FLOW_FILENAME": script_name,
            "METAFLOW_CODE_METADATA": package.metadata,
            "METAFLOW_CODE_SHA": package.sha,
            "METAFLOW_CODE_URL": package.url,
            "METAFLOW_CODE_DS": datastore,
            **paths,
            **(shared_files_environment(flow_datastore.datastore_root) if datastore == "local" else {}),
        },
        user_environment=user_environment(decorators),
    )


def shared_files_environment(datastore_root: str) -> dict[str, str]:
    """Where Metaflow keeps things when client and pods share the file system: an absolute root, nothing to install."""
    return {
        SHARED_FILES: "1",
        "METAFLOW_DATASTORE_SYSROOT_LOCAL": dirname(datastore_root),
        "METAFLOW_SKIP_INSTALL_DEPENDENCIES": "1",
    }


def _chunks(text: str) -> Iterator[tuple[str, str]]:
    for number, start in enumerate(range(0, len(text), _INPUT_PATHS_CHUNK)):
        yield f"METAFLOW_INPUT_PATHS_{number}", text[start : start + _INPUT_PATHS_CHUNK]


def _top_words(top_options: Mapping[str, Any], flow_datastore: Any) -> list[str]:
    """The flow's own options again. A local file of configuration stays local; the datastore's root is made explicit."""
    kept = {name: value for name, value in top_options.items() if name != "local_config_file"}
    if flow_datastore.TYPE == "local":
        kept["datastore_root"] = flow_datastore.datastore_root
    return list(cli_args._options(kept))


def _step_words(options: Mapping[str, Any], is_gang: bool, has_catch: bool) -> list[str]:
    kept = {name: options.get(name) for name in _PASSED_ON}
    kept["namespace"] = options.get("metaflow_namespace")
    # A rank that catches its own failure leaves the others hanging in a gang that looks fine: @catch sees one more attempt
    # to come, and acts in the attempt that core runs locally after the gang has failed.
    kept["max_user_code_retries"] = int(options.get("max_user_code_retries") or 0) + int(is_gang and has_catch)
    if is_gang:
        kept.pop("split_index")
    return list(cli_args._options(kept))


def user_environment(decorators: Sequence[Any]) -> dict[str, str]:
    found = next((deco for deco in decorators if deco.name == "environment"), None)
    return {} if found is None else {name: str(value) for name, value in dict(found.attributes["vars"]).items()}
