"""What older JobSets don't know: which fields a manifest can do without there, and where support ends.

The API server drops unknown fields of a custom resource without an error, so this is asked before, never after. From JobSet's
CRDs: ttlSecondsAfterFinished came with 0.5, publishNotReadyAddresses with 0.6, restartStrategy (not used) with 0.7.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..errors import InvalidSpec
from .pod import Manifest

OLDEST_JOBSET = "0.5"  # the first one that removes finished JobSets (ttlSecondsAfterFinished), April 2024

# Fields of a JobSet as dotted paths, lists left out of the path.
_NEEDED = ("spec.ttlSecondsAfterFinished", "spec.network.enableDNSHostnames")
# Without it a name resolves only once its pod is ready; our pods have no readiness probe, so that is when they run.
_MAY_BE_LEFT_OUT = ("spec.network.publishNotReadyAddresses",)


def for_served_version(manifest: Mapping[str, Any], fields_served: Collection[str] | None) -> Manifest:
    """The manifest without the fields that the served JobSet doesn't know and that aren't needed.

    `fields_served` are dotted paths as `schema_fields` gives them; None where the cluster doesn't say: nothing is left out.
    InvalidSpec where the JobSet on the cluster is older than `OLDEST_JOBSET`.
    """
    if fields_served is None:
        return dict(manifest)
    missing = [path for path in _NEEDED if path not in fields_served]
    if missing:
        raise InvalidSpec(
            f"The JobSet on this cluster is older than {OLDEST_JOBSET} (it has no {', '.join(missing)}): "
            f"ask its administrator for JobSet {OLDEST_JOBSET} or later."
        )
    result = dict(manifest)
    for path in _MAY_BE_LEFT_OUT:
        if path not in fields_served:
            result = _without(result, path.split("."))
    return result


def schema_fields(schema: Mapping[str, Any], prefix: str = "", depth: int = 3) -> frozenset[str]:
    """Dotted paths of the fields in an OpenAPI v3 schema, of a CRD or of `/openapi/v3/apis/jobset.x-k8s.io/v1alpha2`.

    A list adds nothing to the path: "spec.replicatedJobs.name". At most `depth` names deep.
    """
    inner = schema.get("items") or schema
    found: set[str] = set()
    for name, field in (inner.get("properties") or {}).items():
        path = f"{prefix}{name}"
        found.add(path)
        if depth > 1:
            found |= schema_fields(field, f"{path}.", depth - 1)
    return frozenset(found)


def _without(value: Mapping[str, Any], path: list[str]) -> Manifest:
    name, *rest = path
    if not rest or name not in value:
        return {key: item for key, item in value.items() if key != name}
    return {**value, name: _without(value[name], rest)}
