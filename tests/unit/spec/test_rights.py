"""One list of rights in three places: for the program, for a cluster, for people."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.spec.rights import RIGHTS, rights_for
from tests.contract import places
from tests.contract.test_permissions import ENDS, documented


def test_the_list_is_that_of_the_role() -> None:
    assert [str(right) for right in RIGHTS] == [str(permission) for permission in places.permissions()]
    assert {str(right) for right in RIGHTS} == set(documented())


def test_what_a_run_can_do_without_says_what_it_loses() -> None:
    """As tests/contract/test_permissions.py has it: those in ENDS end the step."""
    assert {str(right) for right in RIGHTS if not right.without} == set(ENDS)


@pytest.mark.parametrize(
    ("has_gangs", "has_queue", "groups"),
    [
        pytest.param(False, False, {"batch", ""}, id="plain steps"),
        pytest.param(True, False, {"batch", "", "jobset.x-k8s.io"}, id="gangs"),
        pytest.param(False, True, {"batch", "", "kueue.x-k8s.io"}, id="a queue"),
    ],
)
def test_only_what_these_steps_need_is_asked_for(has_gangs: bool, has_queue: bool, groups: set[str]) -> None:
    assert {right.group for right in rights_for(has_gangs=has_gangs, has_queue=has_queue)} == groups
