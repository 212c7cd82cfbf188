"""The command line, with a real server in the background."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metaflow_devcluster import cli
from metaflow_devcluster.cli import main
from metaflow_devcluster.lifecycle import Home, LifecycleError, leftover_processes

SOURCE = str(Path(__file__).parents[3] / "metaflow_ext")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("METAFLOW_DEVCLUSTER_HOME", str(tmp_path / "home"))
    yield Home.default()
    main(["down"])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_up_is_private_and_idempotent_and_down_leaves_nothing(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up"]) == 0
    pid = home.state()["pid"]
    assert f"kubeconfig: {home.kubeconfig}" in capsys.readouterr().out
    assert (mode(home.path), mode(home.kubeconfig)) == (0o700, 0o600)
    assert "/s/" in json.loads(home.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    assert main(["up"]) == 0
    assert "already running" in capsys.readouterr().out
    assert home.state()["pid"] == pid
    assert main(["env"]) == 0
    assert capsys.readouterr().out == f"export KUBECONFIG={home.kubeconfig}\nexport METAFLOW_KUBERNETES_SHARED_FILES=1\n"
    assert main(["status"]) == 0
    assert "devcluster-0   True" in capsys.readouterr().out
    assert main(["down"]) == 0
    assert not home.kubeconfig.exists()
    assert not home.is_running()


def test_up_after_a_server_that_was_killed(home: Home) -> None:
    assert main(["up"]) == 0
    first = home.state()["pid"]
    os.kill(first, signal.SIGKILL)
    end = time.monotonic() + 60
    while home.is_running() and time.monotonic() < end:
        time.sleep(0.02)
    assert main(["up"]) == 0
    assert home.state()["pid"] != first


@pytest.mark.parametrize("command", ["env", "status"])
def test_without_a_cluster_the_way_to_one_is_named(home: Home, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command]) == 1
    assert capsys.readouterr().err == (
        "metaflow-devcluster: The cluster is not running; start it with: metaflow-devcluster up\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["up", "--nodes", "0"], "'0' is not a number from 1 to 1000"),
        (["up", "--node-memory", "much"], "'much' is not an amount like 4, 500m or 16Gi"),
        (["up", "--port", "70000"], "'70000' is not a port"),
    ],
)
def test_bad_options(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert text in capsys.readouterr().err


def test_a_directory_that_can_not_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LifecycleError, match="can not be used"):
        Home(tmp_path / "file" / "home").create()


def run(*command: str) -> subprocess.Popen[str]:
    code = "import sys; from metaflow_devcluster.cli import main; sys.exit(main())"
    arguments = [sys.executable, "-c", code, "run", "--", *command]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": SOURCE})


def test_run_gives_the_command_a_cluster_and_its_exit_code_back() -> None:
    with run("sh", "-c", "echo $KUBECONFIG $METAFLOW_KUBERNETES_SHARED_FILES; test -r $KUBECONFIG && exit 7") as process:
        output, _ = process.communicate(timeout=60)
    kubeconfig, shared = output.split()
    assert (process.returncode, shared) == (7, "1")
    assert not Path(kubeconfig).parent.exists()


def test_run_passes_signals_on_and_ends_its_cluster() -> None:
    with run("sh", "-c", "trap 'exit 9' TERM; echo $KUBECONFIG; while :; do sleep 0.05; done") as process:
        assert process.stdout
        kubeconfig = Path(process.stdout.readline().strip())
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 9
    assert not kubeconfig.parent.exists()


def test_a_signal_that_comes_before_the_command_is_known_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = subprocess.Popen

    def slow(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = made(*arguments, **options)
        os.kill(os.getpid(), signal.SIGTERM)
        return process

    monkeypatch.setattr(cli.subprocess, "Popen", slow)
    assert cli._run_command(["sleep", "60"], dict(os.environ)) == 128 + signal.SIGTERM


def test_a_cluster_of_run_ends_with_its_starter_however_that_ends() -> None:
    with run("sh", "-c", "echo $KUBECONFIG; echo $$; exec sleep 60") as process:
        assert process.stdout
        home = Path(process.stdout.readline().strip()).parent
        command = int(process.stdout.readline())
        process.kill()
        os.kill(command, signal.SIGKILL)
    end = time.monotonic() + 60
    while home.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not home.exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_processes_left_behind_are_known_by_their_home(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], env={"HOME": f"{tmp_path}/pods/uid/main/home", "PATH": os.defpath}) as process:
        time.sleep(0.1)
        assert leftover_processes(tmp_path) == [process.pid]
        process.kill()
