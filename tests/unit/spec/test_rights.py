"""One list of rights in three places: for the program, for a cluster, for people."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.spec.rights import RIGHTS, rights_for
from tests.contract import places
from tests.contract.test_permissions import ENDS, OF_POD_GROUPS, documented


def test_the_list_is_that_of_the_role() -> None:
    assert [str(right) for right in RIGHTS] == [str(permission) for permission in places.permissions(places.RBAC_WITH_ALL)]
    assert {str(right) for right in RIGHTS} == set(documented())


def test_what_a_run_can_do_without_says_what_it_loses() -> None:
    """As tests/contract/test_permissions.py has it: those in ENDS end the step."""
    ends = {*ENDS, *(name for name in OF_POD_GROUPS if name.startswith("create"))}
    assert {str(right) for right in RIGHTS if not right.without} == ends


@pytest.mark.parametrize(
    ("which", "groups"),
    [
        pytest.param("", {"batch", ""}, id="plain steps"),
        pytest.param("has_gangs", {"batch", "", "jobset.x-k8s.io"}, id="gangs"),
        pytest.param("has_queue", {"batch", "", "kueue.x-k8s.io"}, id="a queue"),
        pytest.param("coscheduling", {"batch", "", "scheduling.x-k8s.io"}, id="PodGroups of the plugin"),
        pytest.param("native", {"batch", "", "scheduling.k8s.io"}, id="PodGroups of Kubernetes"),
        pytest.param("has_appwrappers", {"batch", "", "workload.codeflare.dev"}, id="AppWrappers"),
    ],
)
def test_only_what_these_steps_need_is_asked_for(which: str, groups: set[str]) -> None:
    asked = {name: name == which for name in ("has_gangs", "has_queue", "has_appwrappers")}
    assert {right.group for right in rights_for(**asked, gangs=[which])} == groups
