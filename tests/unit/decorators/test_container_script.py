"""The script of a task, run by a real bash with a `python` that only says what it was asked."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metaflow_extensions.kubernetes_ext.decorators import completion, container_script
from metaflow_extensions.kubernetes_ext.decorators.container_script import TaskScript
from metaflow_extensions.kubernetes_ext.decorators.task_process import INCOMPLETE

ODD = 'it\'s "odd" $HOME `id` \\ ü\nsecond line'


def make_script(**changes: object) -> TaskScript:
    fields = {
        "pathspec": "Flow/1/train/7",
        "attempt": 2,
        "datastore": "local",
        "datastore_root": "data root/.metaflow",
        "init_commands": [],
        "bootstrap_commands": [],
        "step_words": ["program"],
        **changes,
    }
    return TaskScript(**fields)  # type: ignore[arg-type]


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A directory with a program for the step, and the `python` of these tests."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    program = tmp_path / "bin" / "program"
    program.write_text(
        '#!/bin/sh\nfor word in "$@"; do printf "<%s>" "$word"; done\n'
        '[ -n "$PROGRAM_LEAVES" ] || touch "$METAFLOW_KUBERNETES_COMPLETE_FILE"\nexit ${PROGRAM_EXIT:-0}\n'
    )
    program.chmod(0o755)
    return tmp_path


def environment(box: Path, **variables: str) -> dict[str, str]:
    return {"PATH": f"{box / 'bin'}:/usr/bin:/bin", "HOME": str(box), **variables}


def run(box: Path, script: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", script],
        cwd=box,
        env=environment(box, **variables),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_a_plain_step_gets_its_words_and_its_task_id(box: Path) -> None:
    done = run(box, container_script.plain_step(make_script(step_words=["program", ODD])))
    assert done.stdout == f"<{ODD}><--task-id><7>"
    assert done.returncode == 0


def test_control_says_that_it_is_control(box: Path) -> None:
    done = run(box, container_script.control(make_script()))
    assert done.stdout == "<--ubf-context><ubf_control><--split-index><0><--task-id><7>"


def test_a_worker_takes_its_ids_from_its_completion_index(box: Path) -> None:
    done = run(box, container_script.worker(make_script()), MF_WORKER_REPLICA_INDEX="2")
    assert done.stdout == "<--ubf-context><ubf_task><--split-index><3><--task-id><7-worker-2>"


def test_a_worker_has_a_path_spec_of_its_own(box: Path) -> None:
    script = make_script(step_words=["sh", "-c", 'echo "$MF_PATHSPEC at $MF_ATTEMPT in $MF_DATASTORE_ROOT"'])
    assert run(box, container_script.worker(script), MF_WORKER_REPLICA_INDEX="0").stdout == (
        "Flow/1/train/7-worker-0 at 2 in data root/.metaflow\n"
    )


def test_input_paths_come_out_of_their_variables_in_one_piece(box: Path) -> None:
    script = make_script(input_paths=["A", "B"])
    assert "<--input-paths><1/a/2 3,4>" in run(box, container_script.plain_step(script), A="1/a/2 ", B="3,4").stdout


def test_the_exit_code_is_the_step_s(box: Path) -> None:
    assert run(box, container_script.plain_step(make_script()), PROGRAM_EXIT="37").returncode == 37


def test_exit_code_0_of_a_task_that_is_not_complete_is_a_failure(box: Path) -> None:
    done = run(box, container_script.plain_step(make_script()), PROGRAM_LEAVES="1")
    assert (done.returncode, done.stderr) == (1, INCOMPLETE + "\n")


def test_a_task_is_complete_wherever_the_preparation_leads(box: Path) -> None:
    done = run(box, container_script.plain_step(make_script(init_commands=["mkdir code", "cd code"])))
    assert (done.returncode, done.stderr) == (0, "")


def test_another_exit_code_is_kept_where_the_task_is_not_complete(box: Path) -> None:
    done = run(box, container_script.plain_step(make_script()), PROGRAM_LEAVES="1", PROGRAM_EXIT="3")
    assert (done.returncode, done.stderr) == (3, "")


def test_a_task_states_that_it_is_complete_only_where_it_is_asked_to(tmp_path: Path) -> None:
    completion.state_complete(None)
    completion.state_complete(str(tmp_path / "complete"))
    assert (tmp_path / "complete").exists()


def test_core_s_commands_are_unescaped(box: Path) -> None:
    script = make_script(init_commands=['echo \\"$HOME\\"', "true"], bootstrap_commands=["echo 'in place'"])
    assert run(box, container_script.plain_step(script)).stdout == f"{box}\nin place\n<--task-id><7>"


def test_a_failing_preparation_ends_the_task_with_its_code(box: Path) -> None:
    done = run(box, container_script.plain_step(make_script(init_commands=["exit 9"])))
    assert (done.returncode, done.stdout) == (9, "")


def test_the_init_script_of_a_sandbox_runs_first(box: Path) -> None:
    done = run(box, container_script.plain_step(make_script()), METAFLOW_INIT_SCRIPT="echo first; X=1")
    assert done.stdout == "first\n<--task-id><7>"


def test_sigterm_reaches_the_step_and_its_code_is_kept(box: Path) -> None:
    program = 'trap "echo saved; exit 5" TERM; echo ready; while :; do sleep 0.05; done'
    script = container_script.plain_step(make_script(step_words=["bash", "-c", program]))
    with subprocess.Popen(
        ["bash", "-c", script], cwd=box, env=environment(box), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "saved\n"
        assert process.wait(60) == 5


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=4
    )
)
def test_any_words_arrive_byte_for_byte(box: Path, words: list[str]) -> None:
    done = subprocess.run(
        ["bash", "-c", container_script.plain_step(make_script(step_words=["program", *words]))],
        cwd=box, env=environment(box), capture_output=True, timeout=20, check=False,
    )  # fmt: skip
    assert done.stdout.decode() == "".join(f"<{word}>" for word in words) + "<--task-id><7>"
