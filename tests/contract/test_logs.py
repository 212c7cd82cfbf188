"""What ranks write, as it is told: every line once, with its rank, whatever it looks like and whatever breaks meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import LogEnd, LogGap, LogLine, LogPiece
from metaflow_extensions.kubernetes_ext.runtime.clock import RealClock
from metaflow_extensions.kubernetes_ext.runtime.submit import submit
from metaflow_extensions.kubernetes_ext.spec.resources import Resources
from metaflow_extensions.kubernetes_ext.status.model import Phase, WorkloadStatus
from tests.contract.cutting import cutting
from tests.contract.places import ON_REAL, ON_SERVERS, Place
from tests.contract.stories import NAME, Play, Story, Told, When, tell
from tests.contract.waiting import PATIENCE

MANY = 128
LINES = 1000


def of_rank(told: Told, rank: int) -> list[str]:
    return [line for _, one, line in told.reporter.logs if one == rank]


def gaps(told: Told) -> list[str]:
    return [line for line in told.reporter.lines if "may be missing" in line]


@ON_SERVERS
def test_lines_of_all_kinds_come_as_they_were_written(place: Place) -> None:
    """Longer than a container's runtime keeps together, not text, with carriage returns, empty, and without an end."""
    odd = r"printf 'a\377b\n\n  c\rd\n'; head -c 40000 /dev/zero | tr '\0' x; echo; printf %s end"
    told = tell(place, Story(size=2, command=odd, ranks={0: "true"}))
    assert told.status.phase is Phase.SUCCEEDED, told
    assert of_rank(told, 1) == ["a\ufffdb", "", "  c\rd", "x" * 40000, "end"], told
    assert of_rank(told, 0) == []


@ON_SERVERS
def test_connections_that_break_lose_no_line(place: Place) -> None:
    assert place.load is not None
    write = 'for i in 1 2 3 4 5 6 7 8; do seq 200 | sed "s/^/$RANK part $i line /"; sleep 0.7; done'
    with cutting(place.load(), 50_000) as (proxy, access):
        client = KubernetesClient(lambda: access)
        try:
            told = tell(replace(place, client=client), Story(size=4, command=write))
        finally:
            client.close()
        assert told.status.phase is Phase.SUCCEEDED, told
        assert proxy.cuts > 2
    for rank in range(4):
        assert of_rank(told, rank) == [f"{rank} part {part} line {line}" for part in range(1, 9) for line in range(1, 201)]
    assert gaps(told) == []


@pytest.mark.parametrize("place", ["devcluster"], indirect=True)
def test_a_large_gang_costs_few_threads_and_every_line_comes_once(place: Place, tmp_path: Path) -> None:
    """By a client of its own, so that its memory and threads can be told. Control ends when the first lines have come."""
    write, output = f'seq {LINES} | sed "s/^/$RANK line /"', tmp_path / "output"
    control = f"{write}; while ! [ -s {output} ]; do sleep 0.2; done"
    story = Story(size=MANY, command=write, ranks={0: control}, resources=Resources(cpu="1m", memory="1Mi"))
    backend = story.backend()
    submit(place.client, backend, backend.build(story.spec(place)), namespace=place.namespace, clock=RealClock())
    command = [sys.executable, "-m", "tests.contract.following", str(place.kubeconfig), place.namespace, NAME]
    with output.open("w") as file:
        client = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, timeout=4 * PATIENCE, check=False)
    assert client.returncode == 0, client.stderr
    cost = json.loads(client.stderr.splitlines()[-1])
    print(f"{MANY} ranks, {LINES} lines each: {cost}")
    counted = Counter(output.read_text().splitlines())
    expected = {f"[rank {rank}] {rank} line {line}" for rank in range(MANY) for line in range(1, LINES + 1)}
    assert set(counted) == expected, client.stderr
    assert set(counted.values()) == {1}
    assert "may be missing" not in client.stderr
    assert 0 < cost["threads"] <= 10, "watches, the logs' loop, and its helpers"


@ON_REAL
def test_a_log_that_the_node_rotates_comes_whole_or_with_marks(place: Place) -> None:
    """Followed by two at the same time: one is left in peace, the connections of the other break all the time."""
    assert place.load is not None
    parts, lines = 16, 1000
    write = f'for i in $(seq {parts}); do seq {lines} | sed "s/^/part $i line /; s/$/ {"." * 80}/"; sleep 1; done'
    with cutting(place.load(), 700_000) as (proxy, access), place.another_client() as other:
        broken = KubernetesClient(lambda: access)
        try:
            follower = _Follower(broken, place.namespace)
            told = tell(
                replace(place, client=other), Story(size=2, command=write, ranks={0: "true"}), When(_runs, follower.start)
            )
            pieces = follower.finish(told.rank(1).pod_uid)
        finally:
            broken.close()
    assert told.status.phase is Phase.SUCCEEDED, told
    written = [f"part {part} line {line} {'.' * 80}" for part in range(1, parts + 1) for line in range(1, lines + 1)]
    left = [piece.text for piece in place.client.logs(place.namespace, told.rank(1).pod) if isinstance(piece, LogLine)]
    assert len(left) < len(written), "the node has rotated the log"
    print(
        f"{len(left)} lines are left; gaps: {gaps(told)}; {proxy.cuts} cuts, gaps: {[p for p in pieces if isinstance(p, LogGap)]}"
    )
    peaceful = Counter(of_rank(told, 1))
    assert set(peaceful.values()) == {1}
    assert len(peaceful) == len(written) or gaps(told)
    assert [line for line in written if line in peaceful] == of_rank(told, 1)
    check_marks(pieces, written)


def check_marks(pieces: list[LogPiece], written: list[str]) -> None:
    """Lines come once and in order; where some are missing, there is a mark."""
    at, is_marked = 0, False
    for piece in pieces:
        if isinstance(piece, LogLine):
            if is_marked and piece.text not in written and any(line.endswith(piece.text) for line in written):
                continue  # the node's new file begins in the middle of a line
            place = written.index(piece.text, at)
            assert place == at or is_marked, f"{written[at]!r} is missing without a mark"
            at, is_marked = place + 1, False
        elif isinstance(piece, LogGap):
            is_marked = True
    assert at == len(written) or is_marked


def _runs(status: WorkloadStatus) -> bool:
    return status.ranks[1].phase == "Running"


class _Follower:
    """Follows rank 1's log in a thread."""

    def __init__(self, client: KubernetesClient, namespace: str) -> None:
        self._tails = client.tails(namespace)
        self._pieces: list[LogPiece] = []
        self._thread = threading.Thread(target=self._read, daemon=True)

    def start(self, play: Play) -> None:
        self._tails.add(play.status.ranks[1].pod_uid, play.pod(1))
        self._thread.start()

    def finish(self, key: str) -> list[LogPiece]:
        self._tails.finish(key)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self._pieces

    def _read(self) -> None:
        for piece in self._tails:
            self._pieces.append(piece)
            if isinstance(piece, LogEnd):
                self._tails.close()
