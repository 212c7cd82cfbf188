"""Run gang.ipynb from top to bottom and show what its cells print, as they print it. The notebook itself is not changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).resolve().parent


class TalkingClient(NotebookClient):
    """Prints what the cells print."""

    def process_message(self, msg: dict[str, Any], cell: nbformat.NotebookNode, cell_index: int) -> Any:
        if msg["msg_type"] == "stream":
            print(msg["content"]["text"], end="", flush=True)
        return super().process_message(msg, cell, cell_index)


def main() -> int:
    notebook = nbformat.read(HERE / "gang.ipynb", as_version=4)
    client = TalkingClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(HERE)}})
    try:
        client.execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
