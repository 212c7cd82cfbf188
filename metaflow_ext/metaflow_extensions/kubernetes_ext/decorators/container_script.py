"""The bash script that is a task's container: get the code, run the step, keep its logs.

Core's parts come escaped for `shlex.split('bash -c "..."')` and are unescaped here; everything of ours and of the user
is quoted once and is data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote, split

from .completion import COMPLETE

WORKER_INDEX = "MF_WORKER_REPLICA_INDEX"
LOG_DIRECTORY = "$PWD/.logs"
TASK_PROCESS = f"{__package__}.task_process"


@dataclass(frozen=True, kw_only=True)
class TaskScript:
    """All that the script of every rank is made of.

    `init_commands` and `bootstrap_commands` are core's (escaped), the words are plain; `input_paths` names the variables
    whose concatenation is the value of --input-paths.
    """

    pathspec: str  # flow/run/step/control's task id
    attempt: int
    datastore: str
    datastore_root: str
    init_commands: Sequence[str]
    bootstrap_commands: Sequence[str]
    step_words: Sequence[str]
    input_paths: Sequence[str] = ()


def unescaped(commands: Sequence[str]) -> str:
    """Core's commands, joined, as bash sees them."""
    return split('bash -c "{}"'.format(" && ".join(commands)))[2] if commands else ""


def plain_step(script: TaskScript) -> str:
    task_id = script.pathspec.rsplit("/", 1)[1]
    return _script(script, quote(script.pathspec), ["--task-id", quote(task_id)])


def control(script: TaskScript) -> str:
    task_id = script.pathspec.rsplit("/", 1)[1]
    words = ["--ubf-context", "ubf_control", "--split-index", "0", "--task-id", quote(task_id)]
    return _script(script, quote(script.pathspec), words)


def worker(script: TaskScript) -> str:
    """Of any worker: its index is in the environment, from the pod's completion index."""
    suffix = f'-worker-"${WORKER_INDEX}"'
    task_id = script.pathspec.rsplit("/", 1)[1]
    words = ["--ubf-context", "ubf_task", "--split-index", f"$(({WORKER_INDEX} + 1))", "--task-id", quote(task_id) + suffix]
    return _script(script, quote(script.pathspec) + suffix, words)


def _script(script: TaskScript, pathspec: str, task_words: Sequence[str]) -> str:
    exports: Mapping[str, str] = {
        "PYTHONUNBUFFERED": "x",
        "MF_PATHSPEC": pathspec,
        "MF_DATASTORE": quote(script.datastore),
        "MF_DATASTORE_ROOT": quote(script.datastore_root),
        "MF_ATTEMPT": str(script.attempt),
        "MFLOG_STDOUT": f'"{LOG_DIRECTORY}/mflog_stdout"',
        "MFLOG_STDERR": f'"{LOG_DIRECTORY}/mflog_stderr"',
        COMPLETE: f'"{LOG_DIRECTORY}/complete"',
    }
    step = " ".join([*map(quote, script.step_words), *_input_words(script), *task_words])
    # What is logged so far is saved with the rest: to wait for that would only keep the step from starting.
    init = [command for command in script.init_commands if command != "flush_mflogs"]
    return _TEMPLATE.format(
        log_directory=f'"{LOG_DIRECTORY}"',
        task_process=TASK_PROCESS,
        exports=" ".join(f"{name}={value}" for name, value in exports.items()),
        init=unescaped(init) or "true",
        step=quote(" && ".join(filter(None, [unescaped(script.bootstrap_commands), f"exec {step}"]))),
    )


def _input_words(script: TaskScript) -> list[str]:
    return (
        ["--input-paths", '"{}"'.format("".join(f"${{{name}}}" for name in script.input_paths))] if script.input_paths else []
    )


# An image for any user may have a working directory that only root can write to, and users without a home.
# The step is the child of a process of ours (task_process), which keeps its log. SIGTERM reaches the step by way of it: bash,
# process 1 of the container, would keep it to itself. `wait` returns when a trapped signal comes, so it is called again until
# the task has really ended.
_TEMPLATE = """\
${{METAFLOW_INIT_SCRIPT:+eval "${{METAFLOW_INIT_SCRIPT}}"}} || exit $?
[ -w . ] || cd "$(mktemp -d -p "${{METAFLOW_TEMPDIR:-${{TMPDIR:-/tmp}}}}")" || exit $?
[ -w "${{HOME:-/}}" ] || export HOME="$PWD"
mkdir -p {log_directory} && export {exports} && {init} || exit $?
python -m {task_process} {step} &
task=$!
trap 'kill -TERM $task 2>/dev/null' TERM
while wait $task; code=$?; kill -0 $task 2>/dev/null; do :; done
wait $task; exit $?
"""
