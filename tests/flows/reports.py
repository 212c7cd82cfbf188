"""The report of a failure out of a run's output, with all that differs from run to run and from cluster to cluster replaced."""

from __future__ import annotations

import re

from tests.flows.conftest import Done

_VICTIM = r"was (running|pending), stopped because of it|was stopped because of it"
_REPLACED = [
    (r"(\w+-train)-[0-9a-f]{10}", r"\1-NAME"),
    (r"(-NAME-(?:control|worker)-0-\d+)-[a-z0-9]{5}\b", r"\1-POD"),
    (r"\d\d:\d\d:\d\d UTC", "TIME UTC"),
    (r"from \d\d:\d\d:\d\d to", "from TIME to"),
    (r"It ran for \d+ s", "It ran for N s"),
    (r" on (?!@)[a-z0-9][-a-z0-9.]*(?=[):])", " on NODE"),
    (r"\S+/nope:1|devcluster/does-not-exist:1", "IMAGE"),
    (r'File "[^"]*/', 'File ".../'),
    (r"\d+/\d+ nodes", "N/N nodes"),
    (r"\b(contract|t)-[0-9a-f]{10,12}\b", "NAMESPACE"),
    (r"What was said: .*", "What was said: WORDS OF THE REGISTRY"),  # the kubelet has several, one after the other
    # Which of the others still ran when it was told is a race.
    (_VICTIM, "was stopped because of it"),
]


def report(done: Done) -> list[str]:
    """From its first line, which names who failed, to the one that says what to do. Empty where there is none."""
    lines = [line.partition(")] ")[2] for line in done.output.splitlines()]
    begins = next((number for number, line in enumerate(lines) if line.startswith("Category ")), None)
    if begins is None:
        return []
    ends = next(number for number, line in enumerate(lines) if number > begins and line == "Task failed.")
    return [normal(line) for line in lines[begins - 1 : ends] if not line.startswith("[rank ")]


def normal(line: str) -> str:
    for pattern, replacement in _REPLACED:
        line = re.sub(pattern, replacement, line)
    return line
