"""The node's agent: registers the nodes, follows the pods that are bound to them, and serves the API's `NodeAgent`.

One agent plays all nodes of the cluster. A node that somebody has marked as lost (Ready not "True") is left alone
as if it could not be reached: its processes go on, and nothing is reported until it is Ready again.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import errors
from ..api.agent import LogOptions
from ..api.agent import Process as ProcessProtocol
from ..controllers.delays import Delays
from ..controllers.events import Recorder
from ..controllers.jobset_children import host_names, subdomain_of
from ..controllers.objects import (
    condition,
    is_being_deleted,
    is_terminal,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from ..store import Change, Store
from . import logs, status, volumes
from .addresses import AddressBook, HostName, parse_host_name
from .capacity import NodeSize, default_size, node_object
from .command import Command
from .pod import RunningPod, remaining_grace
from .process import end_all

log = logging.getLogger(__name__)
Object = dict[str, Any]
JOBSETS = "jobsets.jobset.x-k8s.io"
_SHIM_TEST = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x04020000) != 0)"


class Agent:
    """`directory` is the node's own; what is in it is removed with the pods."""

    def __init__(
        self,
        store: Store,
        directory: Path,
        now: Callable[[], datetime.datetime],
        delays: Delays,
        *,
        nodes: Sequence[str] = ("devcluster-0",),
        size: NodeSize | None = None,
        isolate: bool | None = None,
    ) -> None:
        self.delays, self.now = delays, now
        self._store, self._directory = store, directory
        self._nodes, self._size = tuple(nodes), size or default_size()
        self._recorders = {name: Recorder(store, "kubelet", now, host=name) for name in self._nodes}
        self._addresses = AddressBook()
        self._pods: dict[str, RunningPod] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._unreported: set[str] = set()
        self.claims = directory / "claims"
        self.bin_directory = directory / "bin"
        self.can_isolate = can_isolate() if isolate is None else isolate

    # -- life

    def prepare(self) -> None:
        """Make the directories and register the nodes."""
        for path in (self._directory, self.claims, self.bin_directory, self._directory / "pods"):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("python", "python3"):
            script = self.bin_directory / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            script.chmod(script.stat().st_mode | stat.S_IXUSR)
        for name in self._nodes:
            self._store.create("nodes", node_object(name, self._size, self.now()))

    async def run(self) -> None:
        """Follow the store until cancelled; then every process is killed."""
        try:
            with self._store.subscribe() as changes:
                for pod in self._store.list("pods"):
                    self._follow(pod)
                async for change in changes:
                    self._note(change)
        finally:
            await self.close()

    async def close(self) -> None:
        """Kill all containers and wait until they are gone."""
        for pod in self._pods.values():
            pod.kill()
        await end_all(5)  # those of pods whose object is gone, too
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    # -- following the store

    def _note(self, change: Change) -> None:
        if change.resource == "nodes" and change.type == "MODIFIED":
            self._report_again(name_of(change.object))
        elif change.resource == "pods" and change.type == "DELETED":
            self._forget(change.object)
        elif change.resource == "pods":
            self._follow(change.object)

    def _follow(self, pod: Object) -> None:
        if spec_of(pod).get("nodeName") not in self._nodes:
            return
        running = self._pods.get(uid_of(pod))
        if running is None:
            if not is_terminal(pod) and not is_being_deleted(pod):
                self._start(pod)
            elif is_being_deleted(pod):
                self._remove(pod)
            return
        running.pod = pod
        if self._is_lost(pod):
            return
        if is_being_deleted(pod):
            if running.is_over:
                self._remove(pod)
            else:
                running.stop(remaining_grace(pod, self.now()))
        elif is_terminal(pod) and not running.is_over:  # somebody else has ended it
            running.kill()
        else:
            running.evict()

    def _start(self, pod: Object) -> None:
        uid = uid_of(pod)
        address = self._addresses.of_pod(uid, _host_name(pod))
        running = RunningPod(pod, self, self._directory / "pods" / uid, address)
        self._pods[uid] = running
        self._write_hosts(namespace_of(pod))
        task = asyncio.get_running_loop().create_task(running.run(), name=f"pod {name_of(pod)}")
        self._tasks[uid] = task
        task.add_done_callback(_report_crash)

    def _forget(self, pod: Object) -> None:
        running = self._pods.pop(uid_of(pod), None)
        if running is None:
            return
        running.kill()
        task = self._tasks.pop(uid_of(pod), None)

        def clean_up(_: object) -> None:
            self._addresses.release(uid_of(pod))
            volumes.remove(running.directory)

        if task is None or task.done():
            clean_up(None)
        else:
            task.add_done_callback(clean_up)

    def _remove(self, pod: Object) -> None:
        """The last act of a kubelet: the pod has ended, its object may go."""
        preconditions = {"uid": uid_of(pod)}
        try:
            self._store.delete("pods", namespace_of(pod), name_of(pod), grace_seconds=0, preconditions=preconditions)
        except (errors.NotFound, errors.Conflict):
            return

    def _is_lost(self, pod: Object) -> bool:
        node = self._store.find("nodes", None, spec_of(pod)["nodeName"])
        ready = condition(node, "Ready") if node else None
        return ready is None or ready["status"] != "True"

    def _report_again(self, node: str) -> None:
        for uid in list(self._unreported):
            running = self._pods.get(uid)
            if running is None:
                self._unreported.discard(uid)
            elif spec_of(running.pod)["nodeName"] == node and not self._is_lost(running.pod):
                self._unreported.discard(uid)
                self.publish(running)
        for running in list(self._pods.values()):
            current = self._store.find("pods", namespace_of(running.pod), name_of(running.pod))
            if current is not None and spec_of(current).get("nodeName") == node:
                self._follow(current)

    # -- what a running pod needs (pod.Host)

    def read(self, namespace: str, resource: str, name: str) -> Object | None:
        return self._store.find(resource, namespace, name)

    def record(self, pod: Object, type: str, reason: str, message: str, field_path: str = "") -> None:
        self._recorders[spec_of(pod)["nodeName"]](pod, type, reason, message, field_path)

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def publish(self, running: RunningPod) -> None:
        """Write a pod's status; a pod that has ended while being deleted is then removed."""
        pod = self._store.find("pods", namespace_of(running.pod), name_of(running.pod))
        if pod is None or uid_of(pod) != uid_of(running.pod):
            return
        if self._is_lost(pod):
            self._unreported.add(uid_of(pod))
            return
        if not is_terminal(pod):
            new = status.pod_status(pod, running.inits, running.containers, running.facts, self.now())
            pod = self._store.update("pods", {**pod, "status": new}, status_only=True)
        if running.is_over and is_being_deleted(pod):
            self._remove(pod)

    def address_in(self, value: str, namespace: str) -> str:
        """The address for a value that is exactly a pod's host name, else the value."""
        if "." not in value or len(value) > 253:
            return value
        name = parse_host_name(value, namespace)
        return self._addresses.of_name(name) if name and self._is_pod_name(name) else value

    def _is_pod_name(self, name: HostName) -> bool:
        """Whether a pod has this host name, or one of a JobSet that is to come will have it."""
        service = self._store.find("services", name.namespace, name.subdomain)
        if service is None or spec_of(service).get("clusterIP") != "None":
            return False
        for jobset in self._store.list(JOBSETS, name.namespace):
            if subdomain_of(jobset) == name.subdomain and name.host in host_names(jobset):
                return True
        return any(_host_name(pod) == name for pod in self._store.list("pods", name.namespace))

    def hosts_file(self, namespace: str) -> Path:
        return self._directory / "hosts" / namespace

    def _write_hosts(self, namespace: str) -> None:
        """In place: containers have this very file bound over their /etc/hosts."""
        if not self.can_isolate:
            return
        path = self.hosts_file(namespace)
        path.parent.mkdir(parents=True, exist_ok=True)
        for jobset in self._store.list(JOBSETS, namespace):
            for host in sorted(host_names(jobset)):
                self._addresses.of_name(HostName(host, subdomain_of(jobset), namespace))
        try:
            extra = Path("/etc/hosts").read_text()
        except OSError:
            extra = ""
        path.write_text(self._addresses.hosts(namespace) + extra)

    # -- what the API asks (api.agent.NodeAgent)

    async def read_log(self, pod: Mapping[str, Any], options: LogOptions) -> AsyncIterator[bytes]:
        running = self._pods.get(pod["metadata"]["uid"])
        if running is None:
            return
        state = running.state_of(options.container)
        if state is None:
            return
        if options.previous and state.restart_count == 0:
            text = f'previous terminated container "{options.container}" in pod "{pod["metadata"]["name"]}" not found'
            raise errors.bad_request(text)
        if not state.container_id:
            waiting = (state.state.get("waiting") or {}).get("reason", "ContainerCreating")
            text = f'container "{options.container}" in pod "{pod["metadata"]["name"]}" is waiting to start: {waiting}'
            raise errors.bad_request(text)
        path = running.log_path(options.container, previous=options.previous)
        shim = running.shims[options.container]
        async for piece in logs.read_file(path, options, self.now(), shim.ended.done):
            yield piece

    def signal(self, pod: Mapping[str, Any], signal_number: int) -> None:
        running = self._pods.get(pod["metadata"]["uid"])
        if running is not None:
            running.signal(signal_number)

    async def start(self, pod: Mapping[str, Any], container: str, command: Sequence[str], *, stdin: bool) -> ProcessProtocol:
        running = self._pods.get(pod["metadata"]["uid"])
        shim = running.shims.get(container) if running else None
        if running is None or shim is None or shim.ended.done():
            raise errors.internal(f'unable to upgrade connection: container not found ("{container}")')
        return Command.start(running, running.launches[container], list(command), stdin=stdin)


def can_isolate() -> bool:
    """Whether processes here may have a mount namespace of their own: root on Linux, usually."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return False
    return subprocess.run([sys.executable, "-I", "-S", "-c", _SHIM_TEST], check=False).returncode == 0


def _host_name(pod: Object) -> HostName | None:
    spec = spec_of(pod)
    if not spec.get("hostname") or not spec.get("subdomain"):
        return None
    return HostName(spec["hostname"], spec["subdomain"], namespace_of(pod))


def _report_crash(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("%s failed", task.get_name(), exc_info=task.exception())
