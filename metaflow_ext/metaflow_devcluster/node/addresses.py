"""Addresses of pods, and the host names that lead to them.

On Linux every pod has a loopback address of its own, 127.77.x.y, so that all pods may listen on the same port. A
name is given an address the first time anybody asks, even before its pod exists: what a worker is told about its
control pod never has to wait. Elsewhere only 127.0.0.1 answers, and pods of one machine must use different ports.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

_LAST = 254 * 254


@dataclass(frozen=True)
class HostName:
    """A pod's name below a headless Service: `host.subdomain.namespace.svc.cluster.local`."""

    host: str
    subdomain: str
    namespace: str

    def aliases(self) -> list[str]:
        """All forms that a resolver in a pod of the same namespace accepts."""
        short = f"{self.host}.{self.subdomain}"
        space = f"{short}.{self.namespace}"
        return [short, space, f"{space}.svc", f"{space}.svc.cluster.local", f"{space}.svc.cluster.local."]


def parse_host_name(text: str, namespace: str) -> HostName | None:
    """The host name that a value spells, if it has the form of one; short forms are of this namespace."""
    parts = text.rstrip(".").split(".")
    if parts[3:] not in ([], ["svc"], ["svc", "cluster", "local"]) or len(parts) < 2 or not all(parts):
        return None
    return HostName(parts[0], parts[1], parts[2] if len(parts) > 2 else namespace)


@dataclass
class AddressBook:
    """Who has which address. Names keep theirs for the life of the cluster, unless two pods share the name."""

    is_shared: bool = not sys.platform.startswith("linux")
    _next: int = 0
    _names: dict[HostName, str] = field(default_factory=dict)
    _pods: dict[str, str] = field(default_factory=dict)

    def of_pod(self, uid: str, name: HostName | None) -> str:
        """The address of a pod; of two pods with one name (a restart that overlaps) the newer gets the name."""
        if uid in self._pods:
            return self._pods[uid]
        address = self.of_name(name) if name else self._fresh()
        if name and not self.is_shared and address in self._pods.values():
            address = self._names[name] = self._fresh()
        self._pods[uid] = address
        return address

    def of_name(self, name: HostName) -> str:
        """The address that this name has or will have."""
        if name not in self._names:
            self._names[name] = self._fresh()
        return self._names[name]

    def release(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def hosts(self, namespace: str) -> str:
        """The contents of /etc/hosts for the pods of a namespace."""
        lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
        for name, address in self._names.items():
            if name.namespace == namespace:
                lines.append(f"{address} {' '.join([*name.aliases()[3::-1], name.host])}")
        return "\n".join(lines) + "\n"

    def _fresh(self) -> str:
        if self.is_shared:
            return "127.0.0.1"
        used = set(self._pods.values()) | set(self._names.values())
        while True:
            high, low = divmod(self._next % _LAST, 254)
            self._next += 1
            address = f"127.77.{high + 1}.{low + 1}"
            if address not in used or self._next > 2 * _LAST:
                return address
