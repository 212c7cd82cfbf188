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
INCOMPLETE = (
    "The process of this task ended with exit code 0 before the task was complete. Does the step's code call sys.exit() or "
    "os._exit()? A step ends by returning."
)


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
    # The upload of the logs so far prints what it does, which is not the task's output.
    init = [f"{command} > /dev/null" if command == "flush_mflogs" else command for command in script.init_commands]
    return _TEMPLATE.format(
        log_directory=f'"{LOG_DIRECTORY}"',
        complete=f'"${COMPLETE}"',
        incomplete=quote(INCOMPLETE),
        exports=" ".join(f"{name}={value}" for name, value in exports.items()),
        init=unescaped(init) or "true",
        step=" && ".join(filter(None, [unescaped(script.bootstrap_commands), f"exec {step}"])),
    )


def _input_words(script: TaskScript) -> list[str]:
    return (
        ["--input-paths", '"{}"'.format("".join(f"${{{name}}}" for name in script.input_paths))] if script.input_paths else []
    )


# The step's code may leave with exit code 0 in its middle (sys.exit, os._exit). That is no success: others of its gang
# would wait for it for ever.
#
# SIGTERM reaches the step's own process: bash, process 1 of the container, would keep it to itself. `wait` returns when
# a trapped signal comes, so it is called again until the step has really ended.
_TEMPLATE = """\
${{METAFLOW_INIT_SCRIPT:+eval "${{METAFLOW_INIT_SCRIPT}}"}} || exit $?
mkdir -p {log_directory} && export {exports} && {init} || exit $?
( {step} ) 1>> >(exec python -m metaflow.mflog.tee task "$MFLOG_STDOUT") \
2>> >(exec python -m metaflow.mflog.tee task "$MFLOG_STDERR" >&2) &
step=$!
trap 'kill -TERM $step 2>/dev/null' TERM
while wait $step; code=$?; kill -0 $step 2>/dev/null; do :; done
wait $step; code=$?
if [ $code -eq 0 ] && [ ! -e {complete} ]; then
code=1
echo {incomplete} | python -m metaflow.mflog.tee task "$MFLOG_STDERR" >&2
fi
python -m metaflow.mflog.save_logs > /dev/null
exit $code
"""
