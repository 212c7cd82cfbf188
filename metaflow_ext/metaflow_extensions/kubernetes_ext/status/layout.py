"""Which role and rank a pod has: from the workload's spec and the labels its controllers put on pods.

Rank 0 is control; the other replicated jobs follow in the order of the spec. Works for a Job per worker (the job index counts)
and for one Indexed Job (the completion index counts), and for both at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..spec import labels
from ..spec.launch import CONTROL
from .model import KubernetesObject
from .reading import integer, label, mapping, mappings, name, text, uid

TASK = "task"  # the role in a plain Job


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a pod belongs: rank in the workload, index in its role."""

    role: str
    rank: int
    index: int


@dataclass(frozen=True, kw_only=True)
class Group:
    """A replicated job: `replicas` Jobs of `completions` pods each; its first pod has the rank `offset`."""

    name: str
    replicas: int = 1
    completions: int = 1
    offset: int = 0

    @property
    def size(self) -> int:
        return self.replicas * self.completions

    def place(self, job_index: int, completion_index: int) -> Place | None:
        index = job_index * self.completions + completion_index if self.replicas > 1 else completion_index
        if not 0 <= index < self.size:
            return None
        return Place(role=self.name, rank=self.offset + index, index=index)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The groups of a workload, by rank. `workload` is its name, the prefix of its pods' names.

    `at_once` is how many of its ranks ever run together. `slots` is the index of each pod, by uid, where their Job gives them none.
    """

    groups: tuple[Group, ...] = ()
    workload: str = ""
    is_plain_job: bool = False
    at_once: int = 0
    slots: Mapping[str, int] | None = None

    @property
    def size(self) -> int:
        return sum(group.size for group in self.groups)

    def group(self, role: str) -> Group | None:
        return next((group for group in self.groups if group.name == role), None)

    def places(self) -> Iterable[Place]:
        for group in self.groups:
            for index in range(group.size):
                yield Place(role=group.name, rank=group.offset + index, index=index)

    def place(self, pod: KubernetesObject) -> Place | None:
        """None for a pod of another workload, or one beyond the size of its group."""
        group = self.group(TASK if self.is_plain_job else _role(pod))
        if group is None:
            return None
        if self.slots is not None and not has_index(pod):
            return group.place(0, self.slots.get(uid(pod) or name(pod), -1))
        return group.place(_index(pod, labels.JOBSET_JOB_INDEX), _completion_index(pod))

    def place_of_pod_name(self, pod: str) -> Place | None:
        """From a name alone, as messages have it: `<jobset>-<group>-<job index>-<completion index>-xxxxx`."""
        for group in self.groups:
            job = "" if self.is_plain_job else f"-{re.escape(group.name)}-(?P<job>[0-9]+)"
            match = re.fullmatch(rf"{re.escape(self.workload)}{job}(?:-(?P<completion>[0-9]+))?-[a-z0-9]{{5}}", pod)
            if match and (match["completion"] or group.size == 1):
                found = match.groupdict()
                return group.place(int(found.get("job") or 0), int(found["completion"] or 0))
        return None

    def place_of_job_name(self, job: str) -> tuple[str, Place | None]:
        """(role, place) of a Job `<jobset>-<group>-<job index>`; no place where the Job has several ranks."""
        for group in self.groups:
            match = re.fullmatch(rf"{re.escape(self.workload)}-{re.escape(group.name)}-([0-9]+)", job)
            if match or self.is_plain_job:
                index = int(match.group(1)) if match else 0
                return group.name, group.place(index, 0) if group.completions == 1 else None
        return "", None


def jobset_layout(jobset: KubernetesObject) -> Layout:
    """Source: spec.replicatedJobs; a JobSet's Jobs are Indexed by default."""
    groups = [
        Group(
            name=text(entry, "name"),
            replicas=_count(integer(entry, "replicas")),
            completions=_job_size(mapping(entry, "template", "spec")),
        )
        for entry in mappings(jobset, "spec", "replicatedJobs")
    ]
    return _by_rank(groups, name(jobset))


def job_layout(job: KubernetesObject) -> Layout:
    """Source: spec.completions, spec.parallelism."""
    spec = mapping(job, "spec")
    group = Group(name=TASK, completions=_job_size(spec))
    at_once = min(group.size, _count(integer(spec, "parallelism")))
    return Layout(groups=(group,), workload=name(job), is_plain_job=True, at_once=at_once)


def layout_of_pods(pods: Iterable[KubernetesObject], *, is_plain_job: bool = False) -> Layout:
    """What can be known when the workload itself is gone: as many ranks as there were pods."""
    groups: dict[str, Group] = {}
    for pod in pods:
        role = TASK if is_plain_job else _role(pod)
        replicas = integer(label(pod, labels.JOBSET_GROUP_REPLICAS)) or 1
        known = groups.get(role, Group(name=role, replicas=_count(replicas)))
        completions = max(known.completions, _completion_index(pod) + 1)
        groups[role] = Group(name=role, replicas=known.replicas, completions=completions)
    return replace(_by_rank(list(groups.values()), ""), is_plain_job=is_plain_job)


def bare_layout(workload: str, templates: Iterable[KubernetesObject]) -> Layout:
    """Of the pods among the objects that a workload wraps (manifests.bare_pods)."""
    sizes: dict[str, int] = {}
    for template in templates:
        if text(template, "kind") == "Pod":
            sizes[_role(template)] = max(sizes.get(_role(template), 0), _completion_index(template) + 1)
    return _by_rank([Group(name=role, completions=size) for role, size in sizes.items()], workload)


def has_index(pod: KubernetesObject) -> bool:
    return integer(label(pod, labels.COMPLETION_INDEX)) is not None


def _by_rank(groups: list[Group], workload: str) -> Layout:
    ordered, offset = [], 0
    for group in sorted((group for group in groups if group.name), key=lambda group: group.name != CONTROL):
        ordered.append(replace(group, offset=offset))
        offset += group.size
    return Layout(groups=tuple(ordered), workload=workload, at_once=offset)


def _job_size(spec: KubernetesObject) -> int:
    completions = integer(spec, "completions")
    return _count(integer(spec, "parallelism") if completions is None else completions)


def _count(value: int | None) -> int:
    return 1 if value is None else max(value, 0)


def _role(pod: KubernetesObject) -> str:
    return label(pod, labels.JOBSET_GROUP) or label(pod, labels.GROUP)


def _completion_index(pod: KubernetesObject) -> int:
    """The Job's word, or what a pod without a Job says of itself."""
    return _index(pod, labels.COMPLETION_INDEX) if has_index(pod) else _index(pod, labels.INDEX)


def _index(pod: KubernetesObject, key: str) -> int:
    return integer(label(pod, key)) or 0
