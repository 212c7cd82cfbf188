"""How long a probe is waited for."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from metaflow_extensions.kubernetes_ext.status.model import Category, Phase, Waiting, WorkloadStatus
from metaflow_extensions.kubernetes_ext.status.patience import Patience

START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def waits(category: Category, is_hopeless: bool = False) -> WorkloadStatus:
    waiting = Waiting(category=category, summary="It waits.", is_hopeless=is_hopeless)
    return WorkloadStatus(phase=Phase.STARTING, size=1, waiting=waiting)


NEVER, NO_NODE, NO_IMAGE = waits(Category.REJECTED, is_hopeless=True), waits(Category.UNSCHEDULABLE), waits(Category.IMAGE_PULL)
PULLING = waits(Category.UNKNOWN)
RUNNING, DONE = WorkloadStatus(phase=Phase.RUNNING, size=1), WorkloadStatus(phase=Phase.SUCCEEDED, size=1)


@pytest.mark.parametrize(
    ("story", "is_over"),
    [
        pytest.param([(0, PULLING), (299, PULLING)], False, id="an image may take its time"),
        pytest.param([(0, PULLING), (300, PULLING)], True, id="but not longer than the limit"),
        pytest.param([(0, RUNNING), (300, RUNNING)], True, id="nor may what runs"),
        pytest.param([(0, DONE)], True, id="what has ended"),
        pytest.param([(0, NEVER)], True, id="what can't come is not waited for"),
        pytest.param([(0, NO_NODE), (11, NO_NODE)], False, id="a node may be found"),
        pytest.param([(0, NO_NODE), (12, NO_NODE)], True, id="for a while"),
        pytest.param([(0, NO_NODE), (11, NO_IMAGE), (18, NO_IMAGE)], False, id="each reason has its own while"),
        pytest.param([(0, NO_NODE), (11, NO_IMAGE), (19, NO_IMAGE)], True, id="and then it is the answer"),
        pytest.param([(0, NO_NODE), (5, PULLING), (20, NO_NODE)], False, id="a reason that comes back begins anew"),
    ],
)
def test_what_is_waited_for(story: list[tuple[int, WorkloadStatus]], is_over: bool) -> None:
    patience = Patience(limit=300, started=START)
    for seconds, status in story:
        at = START + timedelta(seconds=seconds)
        patience = patience.seen(status, at)
    assert patience.is_over(status, at) is is_over
