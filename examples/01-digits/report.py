"""What the join shows of a training: a table of the ranks in the terminal, and a card with charts."""

from __future__ import annotations

from typing import Any

import numpy as np
from metaflow.cards import Markdown, Table, VegaChart

COLUMNS = ["rank", "task_id", "pod", "node", "ip", "started", "finished", "restarts"]
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
INK, BLUE, RED = "#22303c", "#2a6fbb", "#c8453b"


def gang_rows(tasks: Any) -> list[list[str]]:
    """One row per rank, of the records in `current.gang.tasks`."""
    return [[as_text(column, getattr(task, column)) for column in COLUMNS] for task in tasks]


def as_text(column: str, value: Any) -> str:
    if value is None:
        return "-"
    return value[11:19] if column in ("started", "finished") else str(value)  # of ISO 8601, the time


def print_table(headers: list[str], rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in [headers, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def fill(
    card: Any,
    *,
    accuracy: float,
    difference: float,
    losses: list[float],
    images: np.ndarray,
    digits: np.ndarray,
    guesses: np.ndarray,
    ranks: int,
    gang: list[list[str]],
) -> None:
    """Write the card. `digits` are what is on the test images, `guesses` what the model takes them for."""
    wrong = np.flatnonzero(guesses != digits)
    card.append(Markdown(f"# {accuracy:.1%} of the digits read right"))
    card.append(
        Markdown(
            f"Trained over **{ranks} ranks** on scikit-learn's handwritten digits; tested on {len(digits)} images that no "
            f"rank had seen, {len(wrong)} of them misread. One rank alone learns the same: no weight differs by more than "
            f"`{difference:.0e}`."
        )
    )
    card.append(Markdown("## What is taken for what"))
    card.append(VegaChart(confusion_chart(digits, guesses)))
    if len(wrong):
        card.append(Markdown("## The ones it misread"))
        card.append(VegaChart(images_chart(images[wrong], digits[wrong], guesses[wrong])))
    card.append(Markdown("## How it learned"))
    card.append(VegaChart(loss_chart(losses)))
    if gang:
        card.append(Markdown("## The gang"))
        card.append(Table(gang, headers=COLUMNS))


def confusion_chart(digits: np.ndarray, guesses: np.ndarray) -> dict[str, Any]:
    counts = np.zeros((10, 10), dtype=int)
    np.add.at(counts, (digits, guesses), 1)
    values = [
        {"written": row, "read": column, "images": int(count), "kind": "right" if row == column else "wrong"}
        for (row, column), count in np.ndenumerate(counts)
        if count
    ]
    return {
        "$schema": SCHEMA,
        "data": {"values": values},
        "width": 420,
        "height": 420,
        "encoding": {
            "x": axis("read", "read as", range(10)),
            "y": axis("written", "written", range(10)),
            "tooltip": [{"field": name} for name in ("written", "read", "images")],
        },
        "layer": [
            {
                "mark": {"type": "rect", "cornerRadius": 3},
                "encoding": {
                    "color": {
                        "field": "kind",
                        "scale": {"domain": ["right", "wrong"], "range": [BLUE, RED]},
                        "legend": None,
                    },
                },
            },
            {"mark": {"type": "text", "color": "white", "fontWeight": "bold"}, "encoding": {"text": {"field": "images"}}},
        ],
        "config": config(),
    }


def images_chart(images: np.ndarray, digits: np.ndarray, guesses: np.ndarray, most: int = 18) -> dict[str, Any]:
    shown = zip(images[:most].reshape(-1, 8, 8), digits, guesses, strict=False)
    values = [
        {"number": number, "title": f"{number}: {digit} read as {guess}", "x": x, "y": y, "ink": round(float(ink), 3)}
        for number, (image, digit, guess) in enumerate(shown, start=1)
        for (y, x), ink in np.ndenumerate(image)
    ]
    pixel = {"type": "ordinal", "axis": None, "scale": {"padding": 0}}
    return {
        "$schema": SCHEMA,
        "data": {"values": values},
        "columns": 6,
        "facet": {"field": "title", "title": None, "sort": {"field": "number", "op": "min"}, "header": {"labelFontSize": 12}},
        "spec": {
            "width": 88,
            "height": 88,
            "mark": "rect",
            "encoding": {
                "x": {"field": "x", **pixel},
                "y": {"field": "y", **pixel},
                "color": {
                    "field": "ink",
                    "type": "quantitative",
                    "scale": {"range": ["#ffffff", INK], "interpolate": "rgb"},
                    "legend": None,
                },
            },
        },
        "config": config(),
    }


def loss_chart(losses: list[float]) -> dict[str, Any]:
    return {
        "$schema": SCHEMA,
        "data": {"values": [{"epoch": epoch, "loss": loss} for epoch, loss in enumerate(losses, start=1)]},
        "width": 560,
        "height": 220,
        "mark": {"type": "line", "color": BLUE, "strokeWidth": 2.5},
        "encoding": {
            "x": {"field": "epoch", "type": "quantitative", "axis": {"tickMinStep": 1, "grid": False}},
            "y": {
                "field": "loss",
                "type": "quantitative",
                "title": "mean loss (log scale)",
                "scale": {"type": "log"},
                "axis": {"gridColor": "#eee"},
            },
            "tooltip": [{"field": "epoch"}, {"field": "loss", "format": ".4f"}],
        },
        "config": config(),
    }


def axis(field: str, title: str, domain: range) -> dict[str, Any]:
    return {
        "field": field,
        "type": "ordinal",
        "title": title,
        "scale": {"domain": list(domain), "padding": 0.04},
        "axis": {"labelAngle": 0},
    }


def config() -> dict[str, Any]:
    return {"view": {"stroke": None}, "axis": {"domain": False, "ticks": False, "labelFontSize": 12, "titleFontSize": 12}}
