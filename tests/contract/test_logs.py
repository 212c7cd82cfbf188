"""What ranks write, as it is told: every line once, with its rank, whatever it looks like and whatever breaks meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.runtime.clock import RealClock
from metaflow_extensions.kubernetes_ext.runtime.submit import submit
from metaflow_extensions.kubernetes_ext.spec.resources import Resources
from metaflow_extensions.kubernetes_ext.status.model import Phase
from tests.contract.cutting import cutting
from tests.contract.places import ON_SERVERS, Place
from tests.contract.stories import NAME, Story, Told, tell
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
    assert of_rank(told, 1) == ["a\ufffdb", "", "  c\rd", "x" * 40000, "end"]
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
def test_a_large_gang_costs_few_threads_and_every_line_comes_once(place: Place) -> None:
    """By a client of its own, so that its memory and threads can be told."""
    story = Story(
        size=MANY, command=f"seq {LINES} | sed \"s/^/$RANK line /\"", resources=Resources(cpu="1m", memory="1Mi")
    )  # fmt: skip
    backend = story.backend()
    submit(place.client, backend, backend.build(story.spec(place)), namespace=place.namespace, clock=RealClock())
    command = [sys.executable, "-m", "tests.contract.following", str(place.kubeconfig), place.namespace, NAME]
    client = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
    assert client.returncode == 0, client.stderr
    cost = json.loads(client.stderr.splitlines()[-1])
    print(f"{MANY} ranks, {LINES} lines each: {cost}")
    counted = Counter(client.stdout.splitlines())
    expected = {f"[rank {rank}] {rank} line {line}" for rank in range(MANY) for line in range(1, LINES + 1)}
    assert set(counted) == expected
    assert set(counted.values()) == {1}
    assert "may be missing" not in client.stderr
    assert cost["threads"] <= 10, "watches, the logs' loop, and its helpers"
