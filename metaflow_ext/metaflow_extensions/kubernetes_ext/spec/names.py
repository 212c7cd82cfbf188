"""Names in a cluster and in Metaflow: how they are made, and Kubernetes' rules for them, checked before anything is sent.

Rules: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and .../labels/.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import InvalidSpec

MAX_LABEL = 63
# The longest child of a JobSet is its pod "<name>-worker-0-<index>-xxxxx"; "<name>-worker-0-<index>" is also a host name.
MAX_WORKLOAD_NAME = 44

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")


@dataclass(frozen=True)
class TaskIds:
    """Metaflow task ids of a gang of `size`: control `<id>`, worker i `<id>-worker-<i>`; rank 0 is control, rank r worker r-1.

    The only place that makes or parses them.
    """

    control: str
    size: int = 1

    def __post_init__(self) -> None:
        if not self.control or TaskIds.parse(self.control)[1] != 0:
            raise InvalidSpec(f"{self.control!r} can't be the task id of a control: it is empty, or a worker's.")
        if self.size < 1:
            raise InvalidSpec(f"A gang has at least one rank, not {self.size}.")

    def of_rank(self, rank: int) -> str:
        """InvalidSpec where the gang has no such rank."""
        if not 0 <= rank < self.size:
            raise InvalidSpec(f"Rank {rank} is not in a gang of {self.size}.")
        return self.control if rank == 0 else f"{self.control}-worker-{rank - 1}"

    def all(self) -> tuple[str, ...]:
        """By rank."""
        return tuple(self.of_rank(rank) for rank in range(self.size))

    @staticmethod
    def parse(task_id: str) -> tuple[str, int]:
        """(control's task id, rank). An id without `-worker-<i>` is control's."""
        match = re.fullmatch(r"(.+)-worker-(0|[1-9][0-9]*)", task_id, re.DOTALL)
        return (match.group(1), int(match.group(2)) + 1) if match else (task_id, 0)


def digest(parts: Iterable[str], length: int = 8) -> str:
    """The same parts give the same `length` hexadecimal digits, in every process and release."""
    # Each with its length, so that ("a", "b") and ("a\0b",) differ; any Python string has a digest.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:length]


def slug(text: str, length: int) -> str:
    """`text` as a part of a DNS label, cut to `length`: "MyFlow_2" -> "myflow-2". May be empty."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:length].strip("-")


def workload_name(flow: str, step: str, identity: Sequence[str]) -> str:
    """A readable DNS label that is the same for the same identity (run, step, task, attempt, ...): "digits-train-3f9a2c1b7d"."""
    readable = "-".join(filter(None, (slug(flow, 12), slug(step, 12))))
    if not readable[:1].isalpha():
        readable = f"mf-{readable}".rstrip("-")
    return f"{readable}-{digest((flow, step, *identity), 10)}"


def label_value(text: str) -> str:
    """`text` where it is a valid label value; else its valid characters, cut, and a digest, so that values stay apart."""
    if text == "" or _LABEL_NAME.match(text):
        return text
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-_.")[: MAX_LABEL - 9].strip("-_.")
    return "-".join(filter(None, (readable, digest((text,)))))


def is_dns_label(name: str) -> bool:
    """Whether `name` is a DNS label (RFC 1123): what containers, namespaces and volumes are called."""
    return isinstance(name, str) and _DNS_LABEL.match(name) is not None


def require_dns_label(name: str, what: str) -> None:
    """InvalidSpec unless `name` is a DNS label (RFC 1123), as container and namespace names are."""
    if not is_dns_label(name):
        raise InvalidSpec(
            f"{what} {name!r} is not valid in Kubernetes: lower-case letters, digits and '-', "
            f"a letter or digit at both ends, at most {MAX_LABEL} characters."
        )


def require_dns_subdomain(name: str, what: str) -> None:
    """InvalidSpec unless `name` is a DNS subdomain (RFC 1123), as most objects' names are."""
    if not isinstance(name, str) or len(name) > 253 or not _DNS_SUBDOMAIN.match(name):
        raise InvalidSpec(
            f"{what} {name!r} is not valid in Kubernetes: lower-case letters, digits, '-' and '.', at most 253 characters."
        )


def require_workload_name(name: str, groups: Sequence[tuple[str, int]]) -> None:
    """`groups` are (name, replicas): every pod's host name `<name>-<group>-0-<index>` must be a DNS label."""
    if not _DNS_1035.match(name):
        raise InvalidSpec(
            f"Workload name {name!r} is not valid in Kubernetes: lower-case letters, digits and '-', a letter first, "
            f"at most {MAX_LABEL} characters."
        )
    for group, replicas in groups:
        longest = f"{name}-{group}-0-{replicas - 1}-xxxxx"  # JobSet's webhook asks this of every pod's name
        if len(longest) > MAX_LABEL:
            raise InvalidSpec(
                f"Workload name {name!r} is too long: the name of its pod {longest} has {len(longest)} characters, "
                f"{MAX_LABEL} is the limit."
            )


def require_label_key(key: str, what: str) -> None:
    """InvalidSpec unless `key` is a qualified name: of a label, an annotation or a resource."""
    prefix, _, name = key.rpartition("/")
    if not _LABEL_NAME.match(name) or ("/" in key and not prefix):
        raise InvalidSpec(
            f"{what} key {key!r} is not valid in Kubernetes: [prefix/]name, name of at most {MAX_LABEL} letters, digits, "
            "'-', '_', '.', a letter or digit at both ends."
        )
    if prefix:
        require_dns_subdomain(prefix, f"the prefix of {what} key")


def require_label(key: str, value: str, where: str) -> None:
    """InvalidSpec unless both the key and the value of a label are valid."""
    require_label_key(key, f"{where}: label")
    if not isinstance(value, str) or (value != "" and not _LABEL_NAME.match(value)):
        raise InvalidSpec(
            f"{where}: label {key}={value!r} is not valid in Kubernetes: at most {MAX_LABEL} letters, digits, '-', '_' or '.', "
            "a letter or digit at both ends, or empty."
        )
