"""Prepare a controller's published manifests for a controller that runs as a process beside the cluster.

Reads YAML from standard input and writes one JSON List for `kubectl apply`. Webhooks point at a Service in the
published files; here they point at https://127.0.0.1:PORT, signed by the cluster's own authority.

Usage: manifests.py TOOL PORT CA_FILE (all | FRAMEWORK...)      Keeps the webhooks m<FRAMEWORK>.kb.io, v<FRAMEWORK>.kb.io.
"""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import yaml

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def reachable(client_config: dict[str, Any], port: str, ca: str) -> dict[str, Any]:
    """Return a webhook's clientConfig that names a local port instead of a Service."""
    return {"url": f"https://127.0.0.1:{port}{client_config['service']['path']}", "caBundle": ca}


def prepared(item: dict[str, Any], tool: str, port: str, ca: str, frameworks: set[str]) -> dict[str, Any] | None:
    """Return the object to apply, or None when it has no place here (a Service for example)."""
    if item["kind"] == "CustomResourceDefinition":
        webhook = item["spec"].get("conversion", {}).get("webhook")
        if webhook:
            webhook["clientConfig"] = reachable(webhook["clientConfig"], port, ca)
        return item
    if item["kind"].endswith("WebhookConfiguration"):
        item["metadata"]["name"] = f"{tool}-{item['metadata']['name']}"
        item["webhooks"] = [
            hook for hook in item["webhooks"] if "all" in frameworks or hook["name"].removesuffix(".kb.io")[1:] in frameworks
        ]
        for hook in item["webhooks"]:
            hook["clientConfig"] = reachable(hook["clientConfig"], port, ca)
        return item
    return None


def main() -> None:
    tool, port, ca_file, *frameworks = sys.argv[1:]
    ca = base64.b64encode(Path(ca_file).read_bytes()).decode()
    items = [prepared(item, tool, port, ca, set(frameworks)) for item in yaml.load_all(sys.stdin, Loader) if item]
    json.dump({"apiVersion": "v1", "kind": "List", "items": [item for item in items if item]}, sys.stdout)


if __name__ == "__main__":
    main()
