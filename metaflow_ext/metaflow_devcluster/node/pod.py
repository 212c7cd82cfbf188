"""One pod on the node: runs its containers, restarts them, stops them, and tells the store about it."""

from __future__ import annotations

import asyncio
import datetime
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from ..api.quantities import quantity
from ..controllers.delays import Delays
from ..controllers.objects import EVICT, annotations_of, format_time, name_of, namespace_of, seconds_since, uid_of
from . import environment, images, logs, status, volumes
from .process import End, Launch, Shim

Object = dict[str, Any]
_MAX_RESTART_BACKOFF = 300.0
_CONFIG_RETRY = 1.0
_EVICTION_GRACE = 1.0  # whatever the pod's own is


class Host(Protocol):
    """What a pod needs of its node."""

    delays: Delays
    bin_directory: Path
    claims: Path
    can_isolate: bool

    def now(self) -> datetime.datetime: ...

    def read(self, namespace: str, resource: str, name: str) -> Object | None: ...

    def record(self, pod: Object, type: str, reason: str, message: str, field_path: str = "") -> None: ...

    def publish(self, running: RunningPod) -> None: ...

    def hosts_file(self, namespace: str) -> Path: ...

    def address_in(self, value: str, namespace: str) -> str: ...

    def environment(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class Stop:
    """Why everything is being stopped; the reason and message go into the status."""

    reason: str = ""
    message: str = ""


DEADLINE = Stop("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


class RunningPod:
    """Lives from the pod's assignment to the removal of its object."""

    def __init__(self, pod: Object, host: Host, directory: Path, address: str) -> None:
        self.pod, self._host, self.directory, self.address = pod, host, directory, address
        spec = pod["spec"]
        self.policy = spec.get("restartPolicy", "Always")
        self.inits = [_state(container, "PodInitializing") for container in spec.get("initContainers") or []]
        waiting = "PodInitializing" if self.inits else "ContainerCreating"
        self.containers = [_state(container, waiting) for container in spec["containers"]]
        self.facts = status.PodFacts(pod_ip=address, host_ip="127.0.0.1", start_time=format_time(host.now()))
        self.launches: dict[str, Launch] = {}
        self.shims: dict[str, Shim] = {}
        self.extra: set[Shim] = set()
        self._stop = asyncio.Event()
        self._volumes: dict[str, Path] = {}
        self._warned: set[str] = set()
        self._kill_timer: asyncio.TimerHandle | None = None
        self._kill_at = float("inf")
        self.is_over = False

    # -- life

    async def run(self) -> None:
        """Run all containers to their end (or until stopped)."""
        self._host.publish(self)
        deadline = self.pod["spec"].get("activeDeadlineSeconds")
        timer = None
        if deadline is not None:
            timer = asyncio.get_running_loop().call_later(deadline, self.stop, self._grace(), DEADLINE)
        try:
            await self._pause(self._host.delays.container_start)
            await self._prepare()
            if await self._run_inits():
                runs = [
                    self._run(container, state)
                    for container, state in zip(self.pod["spec"]["containers"], self.containers, strict=True)
                ]
                await asyncio.gather(*runs)
        finally:
            if timer:
                timer.cancel()
            if self._kill_timer:
                self._kill_timer.cancel()
            for shim in [*self.shims.values(), *self.extra]:
                shim.kill()
            self.facts = replace(self.facts, is_stopped=True)
            self.is_over = True
            self._host.publish(self)

    def stop(self, grace: float, why: Stop | None = None) -> None:
        """TERM now and KILL when the grace is over; a later call can only shorten the grace."""
        loop = asyncio.get_running_loop()
        if not self._stop.is_set():
            self._stop.set()
            if why:
                self.facts = replace(self.facts, reason=why.reason, message=why.message)
            for name, shim in self.shims.items():
                if not shim.ended.done():
                    text = f"Stopping container {name}"
                    self._host.record(self.pod, "Normal", "Killing", text, f"spec.containers{{{name}}}")
                    if grace > 0:
                        shim.terminate()
        if grace <= 0:
            self.kill()
            return
        at = loop.time() + grace
        if at < self._kill_at and not self.is_over:
            if self._kill_timer:
                self._kill_timer.cancel()
            self._kill_at = at
            self._kill_timer = loop.call_at(at, self.kill)

    def evict(self) -> None:
        """As its annotation asks for; once."""
        message = annotations_of(self.pod).get(EVICT)
        if message is None or self._stop.is_set():
            return
        self._host.record(self.pod, "Warning", "Evicted", message)
        self.facts = replace(self.facts, is_evicted=True)
        self.stop(_EVICTION_GRACE, Stop("Evicted", message))

    def kill(self) -> None:
        """End every process at once."""
        self._stop.set()
        for shim in [*self.shims.values(), *self.extra]:
            shim.kill()

    def signal(self, number: int) -> None:
        for shim in [*self.shims.values(), *self.extra]:
            shim.signal(number)

    def log_path(self, container: str, *, previous: bool = False) -> Path:
        state = self.state_of(container)
        count = state.restart_count if state else 0
        return self.directory / container / f"{count - 1 if previous else count}.log"

    def state_of(self, container: str) -> status.ContainerState | None:
        return next((state for state in [*self.inits, *self.containers] if state.name == container), None)

    # -- steps

    def _grace(self) -> float:
        grace = self.pod["spec"].get("terminationGracePeriodSeconds")
        return 30.0 if grace is None else float(grace)

    async def _pause(self, seconds: float) -> None:
        """Sleep, but not beyond a stop."""
        if seconds > 0 and not self._stop.is_set():
            try:
                await asyncio.wait_for(self._stop.wait(), seconds)
            except asyncio.TimeoutError:
                return

    async def _prepare(self) -> None:
        """Make the volumes; what they need may come later."""
        while not self._stop.is_set():
            try:
                self._volumes = volumes.make_volumes(self.pod, self.directory / "volumes", self._host.claims, self._reader())
                return
            except environment.ConfigError as error:
                self._host.record(self.pod, "Warning", "FailedMount", f"MountVolume.SetUp failed for volume: {error}")
                await self._pause(_CONFIG_RETRY)

    def _reader(self) -> Callable[[str, str], Object | None]:
        return lambda resource, name: self._host.read(namespace_of(self.pod), resource, name)

    async def _run_inits(self) -> bool:
        for container, state in zip(self.pod["spec"].get("initContainers") or [], self.inits, strict=True):
            await self._run(container, state, is_init=True)
            if state.exit_code != 0:
                return False
        return not self._stop.is_set()

    async def _run(self, container: Object, state: status.ContainerState, *, is_init: bool = False) -> None:
        """Run one container, again and again where the policy wants it."""
        while not self._stop.is_set():
            if not await self._usable_image(container, state):
                return
            launch = await self._launch(container, state)
            if launch is None:
                return
            await self._once(container, state, launch)
            if self._stop.is_set() or not self._restarts(state, is_init):
                return
            await self._back_off(state)

    def _restarts(self, state: status.ContainerState, is_init: bool) -> bool:
        if is_init:
            return self.policy != "Never" and state.exit_code != 0
        return self.policy == "Always" or (self.policy == "OnFailure" and state.exit_code != 0)

    async def _usable_image(self, container: Object, state: status.ContainerState) -> bool:
        image = container.get("image", "")
        path = f"spec.containers{{{state.name}}}"
        while problem := images.image_problem(image):
            if problem.is_pull:
                self._host.record(self.pod, "Normal", "Pulling", f'Pulling image "{image}"', path)
                text = f'Failed to pull image "{image}": {problem.message}'
                self._host.record(self.pod, "Warning", "Failed", text, path)
                self._host.record(self.pod, "Warning", "Failed", f"Error: {problem.reason}", path)
                self._wait_for(state, problem.reason, problem.message)
                await self._pause(min(self._host.delays.pull_backoff, 1.0))
                self._host.record(self.pod, "Normal", "BackOff", f'Back-off pulling image "{image}"', path)
                self._host.record(self.pod, "Warning", "Failed", "Error: ImagePullBackOff", path)
                self._wait_for(state, "ImagePullBackOff", images.back_off_message(image, problem))
                await self._pause(self._host.delays.pull_backoff)
            else:
                self._host.record(self.pod, "Warning", "InspectFailed", problem.message, path)
                self._host.record(self.pod, "Warning", "Failed", f"Error: {problem.reason}", path)
                self._wait_for(state, problem.reason, problem.message)
                await self._stop.wait()
            if self._stop.is_set():
                return False
        return True

    async def _launch(self, container: Object, state: status.ContainerState) -> Launch | None:
        """What to start; waits while the configuration is incomplete, None when stopped meanwhile."""
        while not self._stop.is_set():
            try:
                return self._launch_now(container, state)
            except environment.ConfigError as error:
                reason = "CreateContainerError" if str(error) == "no command specified" else "CreateContainerConfigError"
                self._host.record(self.pod, "Warning", "Failed", f"Error: {error}", f"spec.containers{{{state.name}}}")
                self._wait_for(state, reason, str(error))
                await self._pause(_CONFIG_RETRY)
        return None

    def _launch_now(self, container: Object, state: status.ContainerState) -> Launch:
        name, run = state.name, state.restart_count
        place = self.directory / name
        work, home = place / f"work-{run}", place / "home"
        for path in (work, home):
            path.mkdir(parents=True, exist_ok=True)
        mounts = volumes.container_mounts(container, self._volumes, can_bind=self._host.can_isolate)
        self._warn_about(mounts)
        namespace = namespace_of(self.pod)

        def rewrite(value: str) -> str:
            return self._host.address_in(volumes.rewritten(value, mounts), namespace)

        base = environment.base_environment(
            bin_directory=str(self._host.bin_directory),
            home=str(home),
            hostname=self.hostname,
            server=self._host.environment(),
        )
        pod = {**self.pod, "status": {"podIP": self.address, "hostIP": self.facts.host_ip}}
        env = environment.container_environment(pod, container, self._reader(), base, rewrite)
        command = [*(container.get("command") or []), *(container.get("args") or [])]
        if not command:
            raise environment.ConfigError("no command specified")
        command = [environment.expand(part, env) for part in command]
        command[0] = self._program(command[0])
        directory = container.get("workingDir")
        bindings = [(mount.source, mount.path) for mount in mounts if mount.is_bound]
        if self._host.can_isolate:
            bindings.append((str(self._host.hosts_file(namespace)), "/etc/hosts"))
        limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
        return Launch(
            command=command,
            env=env,
            cwd=volumes.rewritten(directory, mounts) if directory else str(work),
            log=str(self.log_path(name)),
            memory=int(quantity(str(limit))) if limit else None,
            hostname=self.hostname,
            mounts=bindings,
        )

    @property
    def hostname(self) -> str:
        return self.pod["spec"].get("hostname") or name_of(self.pod)[:63]

    def _program(self, program: str) -> str:
        """A path of Python in an image that this machine does not have is the interpreter that runs the cluster."""
        name = os.path.basename(program)
        if program.startswith("/") and name in ("python", "python3") and not os.path.exists(program):
            return str(self._host.bin_directory / name)
        return program

    def _warn_about(self, mounts: list[volumes.Mount]) -> None:
        for mount in mounts:
            if not mount.is_bound and mount.path not in self._warned and mount.source != mount.path:
                self._warned.add(mount.path)
                text = (
                    f'Volume "{mount.volume}" can not be mounted at {mount.path} for a process on this machine: it is '
                    f"at {mount.source}, and environment variables under {mount.path} were changed to that"
                )
                self._host.record(self.pod, "Warning", "MountNotVisible", text)

    async def _once(self, container: Object, state: status.ContainerState, launch: Launch) -> None:
        path = f"spec.containers{{{state.name}}}"
        image = container.get("image", "")
        self._host.record(self.pod, "Normal", "Pulled", f'Container image "{image}" already present on machine', path)
        shim = Shim(launch)
        self.launches[state.name], self.shims[state.name] = launch, shim
        (self.directory / state.name / "pid").write_text(str(shim.pid))
        started_at = format_time(self._host.now())
        pid = await shim.started
        state.container_id = f"devcluster://{uuid.uuid4().hex}{uuid.uuid4().hex}"
        if pid:
            self._host.record(self.pod, "Normal", "Created", "Container created", path)
            self._host.record(self.pod, "Normal", "Started", "Container started", path)
            state.state = {"running": {"startedAt": started_at}}
            self._host.publish(self)
            if self._stop.is_set():
                shim.terminate()
        end = await shim.ended
        if end.failure:
            self._host.record(self.pod, "Warning", "Failed", f"Error: {end.failure}", path)
        state.state = {"terminated": self._terminated(container, state, end, started_at)}
        if not self._restarts(state, False) or self._stop.is_set():
            others = [s for s in self.containers if s is not state and s.exit_code is None]
            if others or state in self.inits:
                self._host.publish(self)

    def _terminated(self, container: Object, state: status.ContainerState, end: End, started_at: str) -> Object:
        reason = "Completed" if end.code == 0 else "Error"
        if end.failure:
            reason = "StartError"
        elif end.out_of_memory:
            reason = "OOMKilled"
        found: Object = {"exitCode": end.code, "reason": reason, "startedAt": started_at}
        found["finishedAt"] = format_time(self._host.now())
        found["containerID"] = state.container_id
        message = end.failure or self._termination_message(container, end)
        if message:
            found["message"] = message
        return found

    def _termination_message(self, container: Object, end: End) -> str:
        path = Path(self._host_path(container))
        if path.is_file() and path.is_relative_to(self.directory):
            return path.read_text(errors="replace")[:4096]
        if container.get("terminationMessagePolicy") == "FallbackToLogsOnError" and end.code != 0:
            return logs.tail(self.log_path(container["name"]))
        return ""

    def _host_path(self, container: Object) -> str:
        mounts = volumes.container_mounts(container, self._volumes, can_bind=False)
        return volumes.rewritten(container.get("terminationMessagePath") or "/dev/termination-log", mounts)

    async def _back_off(self, state: status.ContainerState) -> None:
        first = self._host.delays.restart_backoff
        wait = 0.0 if state.restart_count == 0 else min(first * 2.0 ** (state.restart_count - 1), _MAX_RESTART_BACKOFF)
        if wait:
            state.last_state = state.state
            where = f"{name_of(self.pod)}_{namespace_of(self.pod)}({uid_of(self.pod)})"
            text = f"back-off {wait:g}s restarting failed container={state.name} pod={where}"
            path = f"spec.containers{{{state.name}}}"
            self._host.record(self.pod, "Warning", "BackOff", text.replace("back-off", "Back-off", 1), path)
            self._wait_for(state, "CrashLoopBackOff", text)
            await self._pause(wait)
            if self._stop.is_set():
                state.state = state.last_state
                return
        else:
            state.last_state = state.state
        state.restart_count += 1

    def _wait_for(self, state: status.ContainerState, reason: str, message: str) -> None:
        state.state = {"waiting": {"reason": reason, "message": message}}
        self._host.publish(self)


def _state(container: Object, waiting: str) -> status.ContainerState:
    state = {"waiting": {"reason": waiting}}
    return status.ContainerState(name=container["name"], image=container.get("image", ""), state=state)


def remaining_grace(pod: Object, now: datetime.datetime) -> float:
    """Seconds that a pod being deleted still has."""
    return max(-seconds_since(pod["metadata"].get("deletionTimestamp"), now), 0.0)
