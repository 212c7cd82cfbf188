"""The process between the node and one container: it starts it, writes its log, and leaves nothing behind.

Run as a script by a bare interpreter (`python -I -S`), so it imports the standard library only and starts fast.
Its standard input is its life line: first eight digits (a length) and JSON that say what to run, then lines with
commands (`TERM`, `KILL`, `SIGNAL n`); the end of it, which comes when the node dies however it dies, kills the
container. Its standard output reports, one JSON object a line. On Linux it is the subreaper of everything below it,
so that processes which have left their session are found as well; elsewhere only the container's process group is.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost a third of the start
    from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CLONE_NEWNS, CLONE_NEWUTS = 0x00020000, 0x04000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MEMORY_POLL, LOOKS_PER_SEARCH = 0.05, 8
LONGEST_LINE = 16 * 1024
IS_LINUX = sys.platform.startswith("linux")
LIBC = ctypes.CDLL(None, use_errno=True)


def report(**fields: object) -> None:
    os.write(1, (json.dumps(fields) + "\n").encode())


def descendants(root: int) -> list[int]:
    """All processes below one, from /proc; empty where there is none."""
    children: dict[int, list[int]] = {}
    try:
        entries = os.listdir("/proc")
    except OSError:
        return []
    for entry in entries:
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found.extend(below)
        todo.extend(below)
    return found


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def send_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        pass


def memory_of(pids: list[int], field: str) -> int:
    """Resident bytes of processes: "rss" is cheap and counts shared pages every time, "pss" is neither."""
    total = 0
    for pid in pids:
        try:
            if field == "rss":
                with open(f"/proc/{pid}/statm", "rb") as file:
                    total += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            else:
                with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                    total += sum(int(line.split()[1]) for line in file if line.startswith(b"Pss:")) * 1024
        except (OSError, ValueError, IndexError):
            continue
    return total


class LogFile:
    """Lines with their time, in the format of the container runtime interface."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.rest = b""

    def feed(self, data: bytes) -> None:
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        out = []
        stamp = self.stamp()
        for line in lines:
            out.append(stamp + b" stdout F " + line + b"\n")
        while len(self.rest) > LONGEST_LINE:
            out.append(stamp + b" stdout P " + self.rest[:LONGEST_LINE] + b"\n")
            self.rest = self.rest[LONGEST_LINE:]
        self.write(b"".join(out))

    def end(self) -> None:
        if self.rest:
            self.write(self.stamp() + b" stdout P " + self.rest + b"\n")
            self.rest = b""

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.fd, data) :]

    @staticmethod
    def stamp() -> bytes:
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode() + b".%09dZ" % nanoseconds


def isolate(config: dict[str, Any]) -> None:
    """A mount namespace of its own with the wanted bind mounts, and a host name; only root may."""
    if LIBC.unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0:
        return
    host = config.get("hostname", "").encode()
    if host:
        LIBC.sethostname(host, len(host))
    LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
    for source, target in config["mounts"]:
        LIBC.mount(source.encode(), target.encode(), None, MS_BIND | MS_REC, None)


def become(config: dict[str, Any], output: tuple[int, int], errors: int) -> None:
    """The child: turn into the container's main process, or say why not and end."""
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        if IS_LINUX:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if config.get("mounts"):
            isolate(config)
        stdin = config.get("stdin")
        os.dup2(os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin, 0)
        os.dup2(output[0], 1)
        os.dup2(output[1], 2)
        os.chdir(config["cwd"])
        os.umask(0o022)
        command, env = config["command"], config["env"]
        os.execvpe(command[0], command, env)
    except OSError as error:
        os.write(errors, json.dumps([error.errno, error.strerror, os.fsdecode(error.filename or "")]).encode())
    finally:
        os._exit(127)


class Container:
    """The running container, from its start to its end."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.limit = config.get("memory")
        self.out_of_memory = False
        self.status: int | None = None
        self.log = LogFile(config["log"]) if config.get("log") else None
        self.commands = b""
        self.looks = 0
        self.known: list[int] = []

    def run(self, wakeup: int) -> None:
        reader, writer = os.pipe() if self.log else (-1, -1)
        errors, complain = os.pipe()
        output = (writer, writer) if self.log else (self.config["stdout"], self.config["stderr"])
        self.pid = os.fork()
        if self.pid == 0:
            become(self.config, output, complain)
        os.close(complain)
        for fd in {*output, *([self.config["stdin"]] if self.config.get("stdin") is not None else [])}:
            os.close(fd)
        failure = os.read(errors, 4096)
        if failure:
            os.waitpid(self.pid, 0)
            report(failed=json.loads(failure))
            return
        report(pid=self.pid)
        code = self.loop(reader, wakeup)
        end_all(self.pid)
        if self.log:
            self.drain(self.log, reader)
            self.log.end()
        report(
            code=os.WEXITSTATUS(code) if os.WIFEXITED(code) else 128 + os.WTERMSIG(code),
            signal=os.WTERMSIG(code) if os.WIFSIGNALED(code) else 0,
            oom=self.out_of_memory,
        )

    def loop(self, reader: int, wakeup: int) -> int:
        """Until the main process has ended; its status as waitpid gives it."""
        poll = select.poll()
        for fd in (0, reader, wakeup):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        while self.status is None:
            for fd, _ in poll.poll(MEMORY_POLL * 1000 if self.limit else None):
                if fd == 0:
                    self.command(os.read(0, 4096), poll)
                elif fd == wakeup:
                    os.read(wakeup, 4096)
                elif self.log:
                    data = os.read(reader, 65536)
                    if data:
                        self.log.feed(data)
                    else:
                        poll.unregister(reader)
            self.reap()
            if self.limit and self.status is None:
                self.watch_memory(self.limit)
        return self.status

    def reap(self) -> None:
        """Collect what has ended, the adopted as well."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.status = status

    def command(self, data: bytes, poll: select.poll) -> None:
        if not data:  # the node has died
            self.kill()
            poll.unregister(0)
            return
        *lines, self.commands = (self.commands + data).split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"TERM":
                send(self.pid, signal.SIGTERM)
            elif word == b"KILL":
                self.kill()
            elif word == b"SIGNAL":
                for pid in descendants(os.getpid()) or [self.pid]:
                    send(pid, int(number))

    def kill(self) -> None:
        for pid in [self.pid, *descendants(os.getpid())]:
            send(pid, signal.SIGKILL)
        send_group(self.pid, signal.SIGKILL)

    def watch_memory(self, limit: int) -> None:
        """Known processes at every look, new ones now and then: finding them means reading all of /proc."""
        self.looks += 1
        if self.looks % LOOKS_PER_SEARCH == 1:
            self.known = descendants(os.getpid())
        if memory_of(self.known, "rss") > limit and memory_of(self.known, "pss") > limit:
            self.out_of_memory = True
            self.kill()

    def drain(self, log: LogFile, reader: int) -> None:
        os.set_blocking(reader, False)
        while True:
            try:
                data = os.read(reader, 65536)
            except BlockingIOError:
                return
            if not data:
                return
            log.feed(data)


def end_all(pid: int) -> None:
    """Kill and collect everything that the container has left; all of it, by the subreaper's adoption."""
    send_group(pid, signal.SIGKILL)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        for below in descendants(os.getpid()):
            send(below, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer)
    if IS_LINUX:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    size = b""
    while len(size) < 8:
        size += os.read(0, 8 - len(size)) or sys.exit(0)
    line = b""
    while len(line) < int(size):
        line += os.read(0, int(size) - len(line)) or sys.exit(0)
    try:
        Container(json.loads(line)).run(reader)
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
    os._exit(0)  # the node waits for this end; an interpreter's own takes a while


if __name__ == "__main__":
    main()
