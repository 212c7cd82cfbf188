"""A few seeds of tests/chaos: whole gang runs while requests to the API server go wrong. `tests/chaos --seeds 300` runs more."""

from __future__ import annotations

import pytest

from tests.faults.runs import run
from tests.faults.schedule import scenario
from tests.flows.conftest import ON_BOTH, Runner


@ON_BOTH
@pytest.mark.parametrize("seed", [1, 5])
def test_a_run_under_faults_ends_as_it_would_without(runner: Runner, seed: int) -> None:
    outcome = run(runner, scenario(seed))
    assert not outcome.wrong, str(outcome)


@pytest.mark.parametrize("seed", [2, 3])
def test_a_run_under_other_faults_ends_as_it_would_without(runner: Runner, seed: int) -> None:
    outcome = run(runner, scenario(seed))
    assert not outcome.wrong, str(outcome)
