"""What kinds of objects a cluster serves, read from the answers of its discovery endpoints. Pure.

AppWrapper's two APIs, for one, share group and plural: only the server knows which versions it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .protocol import Resource


def has_resource(answer: Mapping[str, Any], resource: Resource) -> bool:
    """Whether an APIResourceList (GET /apis/GROUP/VERSION) names the resource with its kind."""
    return any(
        entry.get("name") == resource.plural and entry.get("kind", resource.kind) == resource.kind
        for entry in answer.get("resources") or ()
    )


def versions(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """The versions of an APIGroup (GET /apis/GROUP), the preferred one first."""
    preferred = (answer.get("preferredVersion") or {}).get("version")
    served = [entry.get("version") for entry in answer.get("versions") or ()]
    return tuple(sorted(filter(None, served), key=lambda version: version != preferred))
