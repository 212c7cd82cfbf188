"""Where a pod fits: the scheduler's decisions and its words for "nowhere"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..api.quantities import quantity
from .objects import Object, labels_of, name_of, spec_of, status_of

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"


@dataclass(frozen=True)
class Placement:
    """The node that takes the pod."""

    node: str


@dataclass(frozen=True)
class Refusal:
    """Why no node does, in the scheduler's words."""

    message: str
    reason: str = "Unschedulable"


@dataclass
class Load:
    """What the pods on a node have asked for."""

    requests: Counter[str] = field(default_factory=Counter)  # in thousandths, so that they stay whole numbers
    pods: int = 0

    def add(self, pod: Object) -> None:
        self.requests.update(requests_of(pod))
        self.pods += 1


def requests_of(pod: Object) -> Counter[str]:
    """Resource requests of a pod in thousandths: containers summed, at least the largest init container."""
    total: Counter[str] = Counter()
    for container in spec_of(pod).get("containers") or []:
        total.update(_requests(container))
    for container in spec_of(pod).get("initContainers") or []:
        for name, amount in _requests(container).items():
            total[name] = max(total[name], amount)
    return total


def _requests(container: Object) -> Counter[str]:
    resources = container.get("resources") or {}
    wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return Counter({name: _thousandths(amount) for name, amount in wanted.items()})


def _thousandths(amount: object) -> int:
    return int(quantity(str(amount)) * 1000)


def place(pod: Object, nodes: Sequence[Object], loads: Mapping[str, Load]) -> Placement | Refusal:
    """The node with the least requested CPU that can take the pod."""
    if spec_of(pod).get("schedulingGates"):
        return Refusal("Scheduling is blocked due to non-empty scheduling gates", "SchedulingGated")
    if not nodes:
        return Refusal("no nodes available to schedule pods")
    wanted = requests_of(pod)
    reasons: Counter[str] = Counter()
    preemption: Counter[str] = Counter()
    fitting = []
    for node in nodes:
        found, can_free = _obstacles(pod, wanted, node, loads.get(name_of(node), Load()))
        if not found:
            fitting.append(node)
        reasons.update(found)
        preemption[_NO_VICTIMS if can_free else _NOT_HELPFUL] += 1
    if fitting:
        best = min(fitting, key=lambda node: (_used(loads, node), name_of(node)))
        return Placement(name_of(best))
    return refusal(len(nodes), reasons, preemption)


def refusal(count: int, reasons: Counter[str], preemption: Counter[str]) -> Refusal:
    """The sentence of PodScheduled=False and of the FailedScheduling Event."""
    return Refusal(f"0/{count} nodes are available: {_listed(reasons)}. preemption: {_preemption(count, preemption)}")


def missing_claim(name: str, count: int) -> Refusal:
    """For a pod whose PersistentVolumeClaim does not exist."""
    text = f'0/{count} nodes are available: persistentvolumeclaim "{name}" not found.'
    return Refusal(f"{text} preemption: {_preemption(count, Counter({_NOT_HELPFUL: count}))}")


def _preemption(count: int, reasons: Counter[str]) -> str:
    return f"0/{count} nodes are available: {_listed(reasons)}."


def _listed(reasons: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))


def _used(loads: Mapping[str, Load], node: Object) -> tuple[int, int]:
    load = loads.get(name_of(node), Load())
    return load.requests["cpu"], load.pods


def _obstacles(pod: Object, wanted: Counter[str], node: Object, load: Load) -> tuple[list[str], bool]:
    """Why a node can't take the pod, by the first filter that objects; whether fewer pods on it would help."""
    if spec_of(node).get("unschedulable") and not _tolerates(pod, {"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"}):
        return ["node(s) were unschedulable"], False
    taints = [t for t in spec_of(node).get("taints") or [] if t["effect"] in ("NoSchedule", "NoExecute")]
    if any(not _tolerates(pod, taint) for taint in taints):
        return ["node(s) had untolerated taint(s)"], False
    if not matches_node(pod, node):
        return ["node(s) didn't match Pod's node affinity/selector"], False
    allocatable = status_of(node).get("allocatable") or {}
    found, can_free = [], True
    if load.pods + 1 > _thousandths(allocatable.get("pods", "110")) / 1000:
        found.append("Too many pods")
    for name, amount in sorted(wanted.items()):
        room = _thousandths(allocatable.get(name, "0"))
        if amount and load.requests[name] + amount > room:
            found.append(f"Insufficient {name}")
            can_free = can_free and amount <= room
    return found, can_free


def tolerates(toleration: Object, taint: Object) -> bool:
    """Whether one toleration covers a taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _tolerates(pod: Object, taint: Object) -> bool:
    return any(tolerates(toleration, taint) for toleration in spec_of(pod).get("tolerations") or [])


def matches_node(pod: Object, node: Object) -> bool:
    """nodeSelector and the required node affinity."""
    labels = labels_of(node)
    selector = spec_of(pod).get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (spec_of(pod).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term_matches(term, node) for term in required.get("nodeSelectorTerms") or [])


def _term_matches(term: Object, node: Object) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    names = {"metadata.name": name_of(node)}
    by_label = all(_expression_matches(entry, labels_of(node)) for entry in expressions)
    return by_label and all(_expression_matches(entry, names) for entry in fields)


def _expression_matches(entry: Object, labels: Mapping[str, str]) -> bool:
    key, operator, values = entry["key"], entry["operator"], entry.get("values") or []
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator == "NotIn":
        return labels.get(key) not in values
    if key not in labels:
        return False
    if operator == "In":
        return labels[key] in values
    try:
        have, bound = int(labels[key]), int(values[0])
    except (ValueError, IndexError):
        return False
    return have > bound if operator == "Gt" else have < bound
