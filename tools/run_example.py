"""Install, start the development cluster, run an example on it, show its result, stop the cluster. Standard library only."""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environment import ROOT, SetupFailed, environment, say, shown, variables

EXAMPLES = ROOT / "examples"

# Run in the virtual environment: what the flow says of its result, and where its cards are.
RESULT = """
import os, sys
from metaflow import Run, namespace
from metaflow.cards import get_cards
from metaflow.plugins.cards.exception import CardNotPresentException

namespace(None)
run = Run(sys.argv[1])
if run.successful and "result" in run.data:
    print("\\nresult  ", run.data.result)
for step in run:
    for task in step:
        try:
            cards = get_cards(task)
        except CardNotPresentException:
            continue
        for card in cards:
            path = os.path.join(task.metadata_dict.get("ds-root", ""), "mf.cards", card.path)
            print("card    ", f"file://{path}" if os.path.exists(path) else card.path)
"""


def main() -> int:
    options, arguments = parser().parse_known_args()
    examples = {path.name: path for path in sorted(EXAMPLES.iterdir()) if (path / "requirements.txt").exists()}
    if options.list or not options.name:
        for name, path in examples.items():
            print(f"{name:14}{about(path)}")
        return 0
    matches = [name for name in examples if options.name.rstrip("/") in (name, name.split("-")[0], name.split("-", 1)[-1])]
    if len(matches) != 1:
        say(f"There is no example {options.name!r}; there are: {', '.join(examples)}.")
        return 2
    example = examples[matches[0]]
    started = time.monotonic()
    try:
        place = environment(f"example-{example.name}", requirements=[example / "requirements.txt"])
    except SetupFailed as error:
        say(str(error))
        return 1
    code = run(example, place, arguments)
    say(f"{'done' if code == 0 else f'failed with exit code {code}'} in {time.monotonic() - started:.0f} s")
    return code


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="examples/run",
        description="Run an example on a local development cluster. Further arguments go to the flow, such as --ranks 2.",
        allow_abbrev=False,
    )
    result.add_argument("name", nargs="?", help="its directory's name, or only its number: 01-digits, 01, digits")
    result.add_argument("--list", action="store_true", help="show all examples")
    return result


def about(example: Path) -> str:
    """The first sentence of a flow's docstring, or the title of the README."""
    if (example / "flow.py").exists():
        return (ast.get_docstring(ast.parse((example / "flow.py").read_text())) or "").split("\n")[0]
    return (example / "README.md").read_text().split("\n")[0].lstrip("# ") + "."


def run(example: Path, place: Path, arguments: list[str]) -> int:
    """The exit code of the flow, or of the notebook."""
    cluster = ["metaflow-devcluster", "run", "--"]
    if (example / "execute.py").exists():
        return call([*cluster, "python", "execute.py", *arguments], example, place)
    with tempfile.TemporaryDirectory() as directory:
        run_id = Path(directory) / "run-id"
        flow = ["python", "flow.py", "run", "--with", "kubernetes", "--run-id-file", str(run_id), *arguments]
        say(f"Running {shown(example / 'flow.py')} --with kubernetes on a development cluster")
        code = call([*cluster, *flow], example, place)
        if code == 0:
            name = flow_name(example / "flow.py")
            call(["python", "-c", RESULT, f"{name}/{run_id.read_text().strip()}"], example, place)
    return code


def flow_name(path: Path) -> str:
    classes = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    return next(name for name in classes if name.endswith("Flow"))


def call(command: list[str], directory: Path, place: Path) -> int:
    process = subprocess.Popen(command, cwd=directory, env=variables(place))
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C reaches the flow too, which stops its pods; wait for it


if __name__ == "__main__":
    sys.exit(main())
