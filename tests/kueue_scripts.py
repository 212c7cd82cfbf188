"""Scripts for a queue of the development cluster, from recordings of a real Kueue."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Entry = Mapping[str, Any]
_KUEUES_OWN = ("conditions", "resourceRequests", "admission", "accumulatedPastExecutionTimeSeconds")


def script_of(entries: Iterable[Entry], kind: str, name: str) -> str:
    """What Kueue wrote about this workload, and when it suspended and resumed it: the text of a script."""
    conditions: dict[str, list[str]] = {}
    status: dict[str, Any] = {}
    spec, suspend, before, steps = True, True, 0.0, []
    for entry in entries:
        obj = entry["object"]
        step: dict[str, Any] = {}
        if obj["kind"] == kind and obj["metadata"]["name"] == name and entry["type"] != "DELETED":
            if bool(obj["spec"].get("suspend")) != suspend:
                suspend = step["suspend"] = not suspend
        elif obj["kind"] == "Workload" and entry["type"] != "DELETED" and _belongs(obj, kind, name):
            found = obj.get("status") or {}
            now = {c["type"]: [c["status"], c["reason"], c["message"]] for c in found.get("conditions") or ()}
            changed = {kind: words for kind, words in now.items() if conditions.get(kind) != words and kind != "Finished"}
            others = {key: value for key, value in found.items() if key not in _KUEUES_OWN}
            if changed:
                step["conditions"] = changed
            if others != status:
                step["status"] = {**dict.fromkeys(status), **others}
            if obj["spec"]["active"] != spec:
                spec = obj["spec"]["active"]
                step["spec"] = {"active": spec}
            conditions, status = now, others
        if step:
            at = max(float(entry["t"]), 0.0)
            steps.append({"after": round(max(at - before, 0.0), 3), **step})
            before = at
    return json.dumps(steps, indent=1)


def _belongs(workload: Mapping[str, Any], kind: str, name: str) -> bool:
    return any(owner["kind"] == kind and owner["name"] == name for owner in workload["metadata"].get("ownerReferences") or ())
