"""What the user who runs flows must be allowed to do: the list behind `kubernetes check`. docs/rbac*.yaml say the same to a
cluster, docs/permissions.md to people; a test compares the three."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from . import gang

JOBSET, BATCH, CORE, KUEUE = "jobset.x-k8s.io", "batch", "", "kueue.x-k8s.io"
APPWRAPPER = "workload.codeflare.dev"
COSCHEDULING, NATIVE = "scheduling.x-k8s.io", "scheduling.k8s.io"
ROLE_FILES = {
    APPWRAPPER: "docs/rbac-appwrapper.yaml",
    COSCHEDULING: "docs/rbac-podgroup.yaml",
    NATIVE: "docs/rbac-podgroup.yaml",
}  # of groups that not everybody needs; others are in docs/rbac.yaml


@dataclass(frozen=True)
class Right:
    """One verb on one resource. `without` is what happens without it; "" where no step can run then."""

    verb: str
    group: str
    resource: str  # with its subresource: pods/log
    without: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


_WORKLOAD = {
    "create": "",
    "get": "",
    "list": "",
    "watch": "they are listed now and then instead",
    "patch": "a run does not hear who has killed its workload",
    "delete": "",
}

_POD_GROUP = {
    "create": "",
    "get": "a PodGroup whose creation had no clear answer ends the step",
    "patch": "PodGroups stay when their workload is gone",
    "delete": "PodGroups stay whose workload could not be created",
}

RIGHTS: tuple[Right, ...] = (
    *(Right(verb, JOBSET, "jobsets", without) for verb, without in _WORKLOAD.items()),
    *(Right(verb, BATCH, "jobs", without) for verb, without in _WORKLOAD.items()),
    Right("list", CORE, "pods", "much of what happens to ranks can't be told"),
    Right("watch", CORE, "pods", "they are listed now and then instead"),
    Right("get", CORE, "pods/log", "the output of ranks is not shown while they run"),
    Right("list", CORE, "events", "some causes of waiting and failing can't be told"),
    Right("list", KUEUE, "workloads", "why a workload waits in its queue can't be told"),
    *(Right(verb, APPWRAPPER, "appwrappers", without) for verb, without in _WORKLOAD.items()),
    *(Right(verb, COSCHEDULING, "podgroups", without) for verb, without in _POD_GROUP.items()),
    *(Right(verb, NATIVE, "podgroups", without) for verb, without in _POD_GROUP.items()),
)


def rights_for(*, has_gangs: bool, has_queue: bool, has_appwrappers: bool, gangs: Collection[str] = ()) -> tuple[Right, ...]:
    """Those that such steps need. `gangs`: the kinds of PodGroup, of spec.gang.POD_GROUPS."""
    is_needed = {
        JOBSET: has_gangs, KUEUE: has_queue, APPWRAPPER: has_appwrappers, COSCHEDULING: gang.COSCHEDULING in gangs,
        NATIVE: gang.NATIVE in gangs,
    }  # fmt: skip
    return tuple(right for right in RIGHTS if is_needed.get(right.group, True))
