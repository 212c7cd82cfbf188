"""How much processor time the processes that a rank may be waiting for have used, from /proc. Elsewhere: its ended children."""

from __future__ import annotations

import os
import resource


def others_cpu(is_container: bool) -> float:
    """Seconds. Of all processes that can be seen in a container; where it is none, of those of this session."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = ended.ru_utime + ended.ru_stime
    if os.path.isdir("/proc/self"):
        session = None if is_container else os.getsid(0)
        total += sum(_seconds(name, session) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())
    return total


def _seconds(pid: str, session: int | None) -> float:
    """With those of its ended children; 0 for one that has ended meanwhile."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()  # from the third on: the name before may have blanks
        if session is not None and int(fields[3]) != session:
            return 0.0
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0
