"""What goes wrong in one run, drawn from a seed. Pure: the same seed is the same schedule, on any machine.

Faults are tied to requests by their number (the third list of pods), not to the clock, so that a failing seed can be run again
and meets the same faults. An outage begins at such a request, too, and lasts for a set time.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

FAULTS = (
    "refused",  # the connection is reset before the request has been read
    "lost request",  # the connection is reset, the server has not heard of the request
    "lost answer",  # the server has done what was asked, the connection is reset
    "cut answer",  # half of the answer, then a reset
    "half-open",  # of a watch or a log: nothing comes any more, for `seconds`; of others: no answer
    "slow",  # the request reaches the server `seconds` later
    "a page",  # status 200 with HTML, as a captive portal answers
    "401",
    "403",
    "409",
    "410",
    "429",
    "500",
    "502",
    "503",
    "504",
    "outage",  # for `seconds`, every connection is refused, and all that are open are reset
)
# Requests of a run, with how many of each kind a fault may wait for.
TARGETS = {
    "create jobsets": 2,
    "get jobsets": 2,
    "list jobsets": 4,
    "watch jobsets": 4,
    "list jobs": 4,
    "watch jobs": 4,
    "list pods": 4,
    "watch pods": 4,
    "delete jobsets": 2,
    "get pods/log": 4,
    "list events": 2,
}
NOT_AT = {
    "403": ("create", "delete"),  # what may not be done is not done: that is no fault to be borne
    "409": ("get", "list", "watch"),  # no server answers so
    "410": ("create", "get", "delete"),
}
SECONDS = {"slow": (0.2, 3.0), "half-open": (1.0, 8.0), "outage": (0.5, 8.0)}


@dataclass(frozen=True)
class Fault:
    """`kind` meets the `first`-th request (from 1) to `target` and the `count - 1` after it."""

    kind: str
    target: str  # "create jobsets": verb and resource
    first: int
    count: int = 1
    seconds: float = 0.0
    retry_after: int = 0  # of 429 and 503

    def meets(self, target: str, number: int) -> bool:
        return target == self.target and self.first <= number < self.first + self.count

    def __str__(self) -> str:
        which = f"{self.first}" if self.count == 1 else f"{self.first} to {self.first + self.count - 1}"
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.target} {which}: {self.kind}{lasting}{f' (Retry-After {self.retry_after})' if self.retry_after else ''}"


@dataclass(frozen=True)
class Scenario:
    """A gang of `size`, how it ends without faults, and the faults."""

    seed: int
    size: int
    end: str  # succeeds, fails, recovers (by @retry), interrupted
    culprit: int  # the rank that fails; -1: none
    seconds: float  # that each rank takes
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        what = f"rank {self.culprit} {self.end}" if self.culprit >= 0 else self.end
        return f"seed {self.seed}: gang of {self.size}, {what}; " + "; ".join(map(str, self.faults))


def scenario(seed: int) -> Scenario:
    draw = random.Random(f"chaos {seed}")  # text is hashed the same way in every process
    size = draw.choice((1, 2, 2, 3))
    end = draw.choice(("succeeds", "succeeds", "succeeds", "fails", "fails", "recovers", "interrupted"))
    culprit = draw.randrange(size) if end in ("fails", "recovers") else -1
    faults = tuple(_fault(draw) for _ in range(draw.randint(1, 6)))
    return Scenario(seed, size, end, culprit, round(draw.uniform(0.2, 3.0), 1), faults)


def _fault(draw: random.Random) -> Fault:
    target = draw.choice(list(TARGETS))
    kind = draw.choice([one for one in FAULTS if target.partition(" ")[0] not in NOT_AT.get(one, ())])
    first = min(draw.choice((1, 1, 1, 2, 2, 3, 4)), TARGETS[target])  # most runs are short
    count = draw.choice((1, 1, 1, 2, 3))
    lowest, highest = SECONDS.get(kind, (0.0, 0.0))
    seconds = round(draw.uniform(lowest, highest), 1)
    retry_after = draw.choice((0, 1, 2)) if kind in ("429", "503") else 0
    # Who is told twice that he is nobody has to log in again: of what changes something, nobody bears that.
    is_single = kind in ("outage", "half-open") or (kind == "401" and target.partition(" ")[0] in ("create", "delete"))
    return Fault(kind, target, first, 1 if is_single else count, seconds, retry_after)
