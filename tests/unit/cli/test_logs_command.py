"""Which lines `kubernetes logs` asks for."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from metaflow.exception import MetaflowException

from metaflow_extensions.kubernetes_ext.cli.logs_command import moment

NOW = datetime(2026, 1, 2, 12, 0, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        pytest.param(None, "", id="all"),
        pytest.param("90s", "2026-01-02T11:58:30Z", id="seconds"),
        pytest.param("5m", "2026-01-02T11:55:00Z", id="minutes"),
        pytest.param("2h", "2026-01-02T10:00:00Z", id="hours"),
        pytest.param("1d", "2026-01-01T12:00:00Z", id="days"),
        pytest.param("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", id="a time stamp"),
    ],
)
def test_since(since: str | None, expected: str) -> None:
    assert moment(since, NOW) == expected


@pytest.mark.parametrize("since", ["yesterday", "5", "-5m", "5 m", "1w"])
def test_what_is_no_time_is_refused(since: str) -> None:
    with pytest.raises(MetaflowException, match="--since is"):
        moment(since, NOW)
