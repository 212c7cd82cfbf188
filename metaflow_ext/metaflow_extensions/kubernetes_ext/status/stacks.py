"""Where the ranks of a gang stand, from the stacks that they have left: who stands with whom, and who does not.

Ranks part at the outermost call in which their stacks differ: that is where one of them has gone another way, while the
innermost calls (a read from a socket) are often the same for all, or differ for other reasons.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .reading import dig, moment, text

# The states of a rank. The first three are its own word (decorators.hang_watch).
STILL, MOVING, FINISHED, SILENT = "still", "moving", "finished", "silent"
_IDLE = 0.05  # of a core, at most


@dataclass(frozen=True)
class Frame:
    """One call: a line of `code` in `function`."""

    file: str
    line: int
    function: str
    code: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"

    @property
    def with_code(self) -> str:
        return f"{self}: {self.code}" if self.code else str(self)


@dataclass(frozen=True, kw_only=True)
class RankStack:
    """`stack` has the outermost call first. `busy` is the share of a core that it has used since `since`."""

    rank: int
    state: str = SILENT
    since: datetime | None = None
    busy: float = 0.0
    progress: str = ""  # what it said last of how far it is
    stack: tuple[Frame, ...] = ()
    threads: tuple[tuple[str, tuple[Frame, ...]], ...] = ()  # the others, by name

    @property
    def is_idle(self) -> bool:
        return self.busy <= _IDLE


@dataclass(frozen=True)
class Place:
    """Ranks that stand together, and the call by which they differ from the others; None for those that show no stack."""

    ranks: tuple[RankStack, ...]
    frame: Frame | None

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(one.rank for one in self.ranks)

    @property
    def load(self) -> str:
        """Whether its ranks use their processors: who waits is idle, or spins."""
        if any(one.state == SILENT for one in self.ranks):
            return "no answer: C code keeps Python's lock"
        if all(one.is_idle for one in self.ranks):
            return "idle"
        return f"{max(one.busy for one in self.ranks):.0%} of a core"


def rank_stack(rank: int, record: Mapping[str, Any] | None) -> RankStack:
    """From what a rank has written; of another version, torn or none it is silent."""
    if not record:
        return RankStack(rank=rank)
    busy, state = dig(record, "busy"), text(record, "state")
    threads = record.get("threads")
    return RankStack(
        rank=rank,
        state=state if state in (STILL, MOVING, FINISHED) else SILENT,
        since=moment(record, "since"),
        busy=float(busy) if isinstance(busy, (int, float)) else 0.0,
        progress=text(record, "progress"),
        stack=frames(record.get("stack")),
        threads=tuple((text(one, "thread"), frames(dig(one, "stack"))) for one in threads) if isinstance(threads, list) else (),
    )


def frames(value: Any) -> tuple[Frame, ...]:
    return tuple(
        Frame(str(one[0]), one[1] if isinstance(one[1], int) else 0, str(one[2]), str(one[3]))
        for one in (value if isinstance(value, list) else ())
        if isinstance(one, list) and len(one) == 4
    )


def places(ranks: Sequence[RankStack]) -> list[Place]:
    """Where they part, the places with the fewest ranks first. Who shows no stack is apart from those who do."""
    shown = [one for one in ranks if _shows(one)]
    common = _common([one.stack for one in shown])
    groups: dict[Any, list[RankStack]] = {}
    for one in ranks:
        key: Any = None if _shows(one) else one.state
        if len(shown) == len(ranks) and len(one.stack) > common:
            key = one.stack[common]
        groups.setdefault(key, []).append(one)
    if len(shown) < len(ranks):
        common -= 1  # the last call that they have in common
    found = [Place(tuple(group), _frame(group[0], common)) for group in groups.values()]
    return sorted(found, key=lambda place: (len(place.ranks), place.numbers))


def _shows(one: RankStack) -> bool:
    return bool(one.stack) and one.state != FINISHED


def _common(stacks: Sequence[tuple[Frame, ...]]) -> int:
    """How many outermost calls all have in common."""
    count = 0
    for level in zip(*stacks):  # noqa: B905  (to the end of the shortest)
        if len(set(level)) > 1:
            break
        count += 1
    return count


def _frame(one: RankStack, level: int) -> Frame | None:
    return one.stack[max(0, min(level, len(one.stack) - 1))] if _shows(one) else None


def odd_ones(found: Sequence[Place]) -> tuple[int, ...]:
    """The ranks that don't stand where most of them do; () where there is no such place."""
    size = sum(len(place.ranks) for place in found)
    if len(found) < 2 or len(found[-1].ranks) <= size / 2:
        return ()
    return tuple(sorted(number for place in found[:-1] for number in place.numbers))


def alike(ranks: Sequence[RankStack]) -> list[tuple[RankStack, ...]]:
    """Ranks whose whole stacks are the same, in the order in which they come."""
    groups: dict[Any, list[RankStack]] = {}
    for one in ranks:
        groups.setdefault((one.state, one.stack), []).append(one)
    return [tuple(group) for group in groups.values()]


def folded(numbers: Sequence[int]) -> str:
    """ "rank 3", "ranks 0, 2-5"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"rank{'s' if len(numbers) > 1 else ''} {shown}"


_HEAD = re.compile(r"(Current t|T)hread 0x[0-9a-f]+.*:$")
_CALL = re.compile(r'  File "(.*)", line (\d+) in (.*)$')


def dumped(lines: Sequence[str]) -> tuple[Frame, ...]:
    """The main thread's stack in the last dump by faulthandler's timer among the lines of a log; () if there is none.

    The main thread is the oldest, and faulthandler writes the oldest last, and the innermost call first.
    """
    start = next((index for index in range(len(lines) - 1, -1, -1) if lines[index].startswith("Timeout (")), None)
    stack: list[Frame] = []
    for line in lines[start + 1 :] if start is not None else ():
        if _HEAD.match(line):
            stack = []
        elif call := _CALL.match(line):
            stack.insert(0, Frame(_short(call.group(1)), int(call.group(2)), call.group(3)))
        elif line:
            break
    of_step = [index + 1 for index, frame in enumerate(stack) if frame.function == "_exec_step_function"]
    own = stack[of_step[-1] :] if of_step else stack
    while len(own) > 1 and re.search(r"(^|/)metaflow(_extensions)?/(plugins|kubernetes_ext)/", own[0].file):
        own = own[1:]
    return tuple(own)


def _short(file: str) -> str:
    """As ranks that answer call it: relative to the task's directory, or to where packages are installed."""
    _, found, rest = file.partition("-packages/")
    return rest if found else file.partition("/metaflow/")[2] or file
