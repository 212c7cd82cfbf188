"""Commands that make happen what a real cluster has of its own: evictions, lost nodes, queues."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import kueue, lifecycle
from .controllers.objects import EVICT
from .lifecycle import Home, LifecycleError
from .store import timestamp

Object = dict[str, Any]
_LOW_ON_MEMORY = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 42Mi. "
_LOST = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
_BACK = {"status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
Add = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]


def add_commands(add: Add) -> None:
    evict = add("evict", _evict, "Evict a pod as its node does when it runs out of something.")
    evict.add_argument("pod")
    evict.add_argument("-n", "--namespace", default="default", help="of the pod (default: default)")
    evict.add_argument("--message", default=_LOW_ON_MEMORY, help="what the node says")
    node = add("node", _node, "Lose a node, or get it back: its pods go on, and nobody hears of them.")
    node.add_argument("what", choices=("lost", "restore"))
    node.add_argument("name", help="of the node, such as devcluster-0")
    queue = add("queue", _queue, "Make a queue of Kueue, which does what a script says, or admits at once.")
    queue.add_argument("name")
    queue.add_argument("script", nargs="?", type=Path, help="a JSON file, see docs/devcluster.md")
    queue.add_argument("-n", "--namespace", default="default", help="of the queue (default: default)")


def _evict(parsed: argparse.Namespace) -> int:
    path = f"/api/v1/namespaces/{parsed.namespace}/pods/{parsed.pod}"
    _send("PATCH", path, {"metadata": {"annotations": {EVICT: parsed.message}}})
    print(f"Pod {parsed.pod} is being evicted.")
    return 0


def _node(parsed: argparse.Namespace) -> int:
    """A list in a merge patch is a whole list, so that the other conditions are sent along."""
    node = json.loads(lifecycle.request(Home.default(), f"/api/v1/nodes/{parsed.name}"))
    news = _LOST if parsed.what == "lost" else _BACK
    now = {"lastTransitionTime": timestamp()}
    conditions = [{**c, **news, **now} if c["type"] == "Ready" else c for c in node["status"]["conditions"]]
    _send("PATCH", f"/api/v1/nodes/{parsed.name}/status", {"status": {"conditions": conditions}})
    print(f"Node {parsed.name} is {'lost' if parsed.what == 'lost' else 'back'}.")
    return 0


def _queue(parsed: argparse.Namespace) -> int:
    annotations = {}
    if parsed.script:
        try:
            annotations[kueue.SCRIPT] = parsed.script.read_text()
            kueue.parse_script(annotations[kueue.SCRIPT])
        except OSError as error:
            raise LifecycleError(f"{parsed.script} can not be read: {error.strerror}.") from error
        except ValueError as error:
            raise LifecycleError(str(error)) from error
    known = json.loads(lifecycle.request(Home.default(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"))
    names = {item["metadata"]["name"] for item in known["items"]}
    for definition in kueue.definitions():
        if definition["metadata"]["name"] not in names:
            _send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    path = f"/apis/{kueue.GROUP}/{kueue.VERSION}/namespaces/{parsed.namespace}/localqueues"
    queue = {"metadata": {"name": parsed.name, "annotations": annotations}, "spec": {"clusterQueue": "devcluster"}}
    _send("POST", path, {"apiVersion": f"{kueue.GROUP}/{kueue.VERSION}", "kind": "LocalQueue", **queue})
    print(f"Queue {parsed.name} has been made in namespace {parsed.namespace}.")
    return 0


def _send(method: str, path: str, body: Object) -> None:
    lifecycle.request(Home.default(), path, method=method, body=body)
