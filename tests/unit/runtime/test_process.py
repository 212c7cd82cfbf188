"""Whether the process that follows a workload is still there, as far as this machine can know."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from metaflow_extensions.kubernetes_ext.runtime.process import (
    GONE,
    RUNNING,
    UNKNOWN,
    Client,
    of_json,
    started,
    state,
    this_process,
)

HERE = Client(host="laptop", machine="m1", boot="b1", processes="pid:[1]", pid=1, started="0")
THERE = replace(HERE, pid=42, started="777")


@pytest.mark.parametrize(
    ("client", "started_there", "expected"),
    [
        pytest.param(THERE, "777", RUNNING, id="the same process"),
        pytest.param(THERE, "", GONE, id="no such process"),
        pytest.param(THERE, "999", GONE, id="its id is used by a later process"),
        pytest.param(replace(THERE, boot="b0"), "777", GONE, id="this machine has started anew since"),
        pytest.param(replace(THERE, boot="b0", machine="m2"), "", UNKNOWN, id="another machine of the same name"),
        pytest.param(replace(THERE, boot="b0", machine=""), "", UNKNOWN, id="a machine without an identity"),
        pytest.param(replace(THERE, host="desktop"), "777", UNKNOWN, id="another machine"),
        pytest.param(replace(THERE, processes="pid:[2]"), "", UNKNOWN, id="another container of this machine"),
        pytest.param(None, "", UNKNOWN, id="nothing is written on the workload"),
    ],
)
def test_only_what_can_be_known_is_said(client: Client | None, started_there: str, expected: str) -> None:
    assert state(client, HERE, started_there) == expected


def test_a_real_process_is_seen_to_run_and_to_have_ended() -> None:
    here = this_process()
    assert of_json(here.as_json()) == here
    assert state(here, here, started(here.pid)) == RUNNING
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    there = replace(here, pid=child.pid, started=started(child.pid))
    assert state(there, here, started(child.pid)) == RUNNING
    assert there.started != ""
    child.communicate(b"\n")
    assert state(there, here, started(child.pid)) == GONE


@pytest.mark.parametrize("stored", [None, "x", [], {}, {"host": "h"}, {"host": "h", "pid": "1"}])
def test_an_annotation_that_is_none_of_ours_names_no_client(stored: object) -> None:
    assert of_json(stored) is None
