"""Every permission of docs/rbac*.yaml is needed: without a single one of them, the user hears what docs/permissions.md says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from metaflow_extensions.kubernetes_ext.errors import Forbidden
from metaflow_extensions.kubernetes_ext.manifests.pod_group import API_VERSIONS, pod_group
from metaflow_extensions.kubernetes_ext.runtime.clock import RealClock
from metaflow_extensions.kubernetes_ext.runtime.pod_groups import PodGroups
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.status.model import Phase
from tests.contract import places
from tests.contract.places import Place
from tests.contract.stories import QUICK, Play, Story, Told, When, in_phase, kill, tell

TABLE = Path(__file__).parents[2] / "docs" / "permissions.md"

FAILING_GANG = Story(size=2, command="sleep 300", ranks={1: "echo some output; sleep 1; exit 3"})
FAILING_STEP = Story(size=0, command="echo some output; sleep 1; exit 3")
LONG_GANG, LONG_STEP = Story(size=2, command="sleep 300"), Story(size=0, command="sleep 300")
NO_IMAGE = Story(size=2, command="sleep 300", image="missing")
QUEUED_GANG = Story(size=2, queue="there-is-none")
FAILING_WRAPPED = Story(size=0, command="echo some output; sleep 1; exit 3", fault_tolerance=QUICK)
LONG_WRAPPED = Story(size=0, command="sleep 300", fault_tolerance=QUICK)

ROLES = places.RBAC_WITH_ALL
Scene = Callable[[Place], Told]


def documented() -> dict[str, str]:
    """What happens without a permission, by its name, as the table has it."""
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in TABLE.read_text().splitlines() if "|" in line]
    return {row[0]: row[2] for row in rows[2:]}


def quoted(text: str) -> list[str]:
    return re.findall(r'"([^"]+)"', text)


def delete_by_hand(story: Story) -> Scene:
    return lambda place: tell(place, story, When(in_phase(Phase.RUNNING), Play.delete))


def kill_it(story: Story) -> Scene:
    return lambda place: tell(place, story, When(in_phase(Phase.RUNNING), kill))


def run(story: Story) -> Scene:
    return lambda place: tell(place, story)


def wait_then_delete(story: Story) -> Scene:
    """It is looked at closely while it waits."""

    def scene(place: Place) -> Told:
        found = replace(story, image=place.missing_image) if story.image else story
        return tell(place, found, When(lambda status: status.waiting is not None, look_and_delete))

    return scene


def look_and_delete(play: Play) -> None:
    play.running.look_closer()
    play.delete()


# What needs the permission. A plain step can't go on without what a gang can do without.
ENDS: dict[str, Scene] = {
    "create jobsets.jobset.x-k8s.io": run(FAILING_GANG),
    "get jobsets.jobset.x-k8s.io": delete_by_hand(LONG_GANG),
    "list jobsets.jobset.x-k8s.io": run(LONG_GANG),
    "delete jobsets.jobset.x-k8s.io": kill_it(LONG_GANG),
    "create jobs.batch": run(FAILING_STEP),
    "get jobs.batch": delete_by_hand(LONG_STEP),
    "list jobs.batch": run(LONG_STEP),
    "delete jobs.batch": kill_it(LONG_STEP),
    "create appwrappers.workload.codeflare.dev": run(FAILING_WRAPPED),
    "get appwrappers.workload.codeflare.dev": delete_by_hand(LONG_WRAPPED),
    "list appwrappers.workload.codeflare.dev": run(LONG_WRAPPED),
    "delete appwrappers.workload.codeflare.dev": kill_it(LONG_WRAPPED),
}
GOES_ON: dict[str, Scene] = {
    "watch jobsets.jobset.x-k8s.io": run(FAILING_GANG),
    "list jobs.batch": run(FAILING_GANG),
    "watch jobs.batch": run(FAILING_STEP),
    "list pods": run(FAILING_GANG),
    "watch pods": run(FAILING_GANG),
    "get pods/log": run(FAILING_GANG),
    "list events": wait_then_delete(NO_IMAGE),
    "list workloads.kueue.x-k8s.io": wait_then_delete(QUEUED_GANG),
    "watch appwrappers.workload.codeflare.dev": run(FAILING_WRAPPED),
}
AT_KILL = {
    f"patch {name}" for name in ("jobsets.jobset.x-k8s.io", "jobs.batch", "appwrappers.workload.codeflare.dev")
}  # tests/flows/test_commands.py
# Whose PodGroup it is about, by the permission.
OF_POD_GROUPS = {
    f"{verb} podgroups.{version.rpartition('/')[0]}": gang
    for gang, version in API_VERSIONS.items()
    for verb in ("create", "get", "patch", "delete")
}


def test_the_table_the_role_and_the_tests_name_the_same_permissions() -> None:
    names = {str(permission).removesuffix(".batch") for permission in places.permissions(ROLES)}
    assert {name.removesuffix(".batch") for name in documented()} == names
    assert {name.removesuffix(".batch") for name in {*ENDS, *GOES_ON, *AT_KILL, *OF_POD_GROUPS}} == names


@pytest.fixture
def without(request: pytest.FixtureRequest) -> Iterator[Place]:
    server: places.Server = request.getfixturevalue("real")
    with server.place(without=request.param, roles=ROLES) as place:
        yield place


def named(names: Mapping[str, object]) -> pytest.MarkDecorator:
    found = {str(permission): permission for permission in places.permissions(ROLES)}
    cases = [pytest.param(found[name], name, id=name, marks=pytest.mark.real) for name in names]
    return pytest.mark.parametrize(("without", "name"), cases, indirect=["without"])


@named(ENDS)
def test_what_cannot_go_on_ends_and_names_the_permission(without: Place, name: str) -> None:
    with pytest.raises(Forbidden) as caught:
        ENDS[name](without)
    assert refusal(name) in str(caught.value)
    if name.startswith("delete"):
        assert "When this is solved, run: kubectl delete " in str(caught.value)


@named(GOES_ON)
def test_what_can_go_on_does_and_names_the_permission_once(without: Place, name: str) -> None:
    told = GOES_ON[name](without)
    said = "\n".join(told.reporter.lines)
    assert said.count(refusal(name)) == 1, said
    assert any(phrase in said for phrase in quoted(documented()[name])), said
    failure = told.status.failure
    assert failure is not None
    if told.status.phase is Phase.FAILED:
        assert failure.exit_code == 3, "the verdict is right all the same"


@named(OF_POD_GROUPS)
def test_what_a_pod_group_needs_is_named(without: Place, name: str) -> None:
    told: list[str] = []
    groups = PodGroups(without.client, RealClock(), told.append)
    spec = replace(LONG_GANG.spec(without), gang=OF_POD_GROUPS[name], annotations={labels.SUBMISSION: "s"})
    group = pod_group(spec)
    assert group is not None
    if name.startswith("create"):
        with pytest.raises(Forbidden) as caught:
            groups.post(group)
        assert refusal(name) in str(caught.value)
        return
    groups.post(group)
    if name.startswith("patch"):
        groups.adopt({"apiVersion": "v1", "kind": "JobSet", "metadata": {"name": spec.name, "uid": "u"}})
    else:
        groups.withdraw()
    assert len(told) == 1
    assert refusal(name) in told[0]
    assert any(phrase in told[0] for phrase in quoted(documented()[name])), told


def refusal(name: str) -> str:
    verb, resource = name.split(" ")
    plural, _, group = resource.partition(".")
    return f'The Role of this user needs the verb "{verb}" on "{plural}" in the API group "{group}".'
