"""What older JobSets don't know: which fields a manifest can do without there, and where support ends.

Asked for strict validation, the API server refuses unknown fields by name (else it drops them without an error). From JobSet's
CRDs: ttlSecondsAfterFinished came with 0.5, publishNotReadyAddresses with 0.6, restartStrategy (not used) with 0.7.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..errors import InvalidSpec
from .manifest import Manifest

OLDEST_JOBSET = "0.5"  # the first one that removes finished JobSets (ttlSecondsAfterFinished), April 2024

# Fields of a JobSet as dotted paths, lists left out of the path.
_NEEDED = ("spec.ttlSecondsAfterFinished", "spec.network.enableDNSHostnames")
# Without it a name resolves only once its pod is ready; our pods have no readiness probe, so that is when they run.
_MAY_BE_LEFT_OUT = ("spec.network.publishNotReadyAddresses",)


def without_fields(manifest: Mapping[str, Any], unknown: Collection[str]) -> Manifest:
    """The manifest for a server that refuses the fields `unknown` (dotted paths), without those that aren't needed.

    InvalidSpec where one is: the JobSet on the cluster is then older than `OLDEST_JOBSET`, or not the one we know.
    """
    missing = [path for path in _NEEDED if path in unknown]
    if missing:
        raise InvalidSpec(
            f"The JobSet on this cluster is older than {OLDEST_JOBSET} (it has no {', '.join(missing)}): "
            f"ask its administrator for JobSet {OLDEST_JOBSET} or later."
        )
    strange = sorted(set(unknown) - set(_MAY_BE_LEFT_OUT))
    if strange:
        raise InvalidSpec(f"The {manifest.get('kind')} of this cluster does not know {', '.join(strange)}.")
    result = dict(manifest)
    for path in unknown:
        result = _without(result, path.split("."))
    return result


def _without(value: Mapping[str, Any], path: list[str]) -> Manifest:
    name, *rest = path
    if not rest or name not in value:
        return {key: item for key, item in value.items() if key != name}
    return {**value, name: _without(value[name], rest)}
