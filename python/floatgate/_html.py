"""Results in words, and as they look in a notebook."""

import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from arro3.core import Table

from . import _floatgate

STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"


def write_report(kind: str, document: str, path: "str | os.PathLike[str]") -> None:
    """Writes the report of a document as one page, which needs no network."""
    Path(path).write_text(_floatgate.report_of(kind, document), encoding="utf-8")


def micros(us: float | None) -> str:
    """A time in us, in a unit that suits it.

    >>> micros(424.0), micros(2680.0), micros(1.01e8), micros(None)
    ('424 us', '2.68 ms', '101 s', '-')
    """
    if us is None:
        return "-"
    for unit, factor in (("us", 1.0), ("ms", 1e3)):
        if abs(us) < 999.5 * factor:
            return f"{short(us / factor)} {unit}"
    return f"{short(us / 1e6)} s"


def short(value: float | int | None) -> str:
    """A number with three digits, or in full if it is a count or large.

    >>> short(1.9), short(2.0), short(0.01234), short(424.0), short(12345.6), short(12345)
    ('1.90', '2.00', '0.0123', '424', '12,346', '12,345')
    """
    if value is None:
        return "-"
    if isinstance(value, int) or abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:#.3g}"


def sentence(record: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """A run in one line."""
    response = record["time"]["response"]["all"]
    amplification = short(record["derived"]["write_amplification"])
    return (
        f"{record['scheme']} on {document['trace']['name']}, mean response {micros(response['mean_us'])}, "
        f"p99 {micros(response['p99_us'])}, write amplification {amplification}"
    )


def rows(pairs: list[tuple[str, str]]) -> str:
    """A table of two columns."""
    lines = (row_of([escape(name), escape(value)], words=1) for name, value in pairs)
    return f'<table style="{STYLE}">{"".join(lines)}</table>'


def of_run(record: Mapping[str, Any], document: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """A run as a notebook shows it: what ran, the main figures, the notes."""
    pairs = [
        ("mean response", micros(summary["response_mean_us"])),
        ("p99", micros(summary["response_p99_us"])),
        ("p99.9", micros(summary["response_p99_9_us"])),
        ("longest", micros(summary["response_max_us"])),
        ("write amplification", short(summary["write_amplification"])),
        ("blocks erased", short(summary["erases"])),
        ("pages copied", short(summary["copies"])),
        ("energy", f"{short(summary['energy_uj'] / 1e6)} J"),
    ]
    if summary["behind_s"] is not None:
        pairs.append(("behind at the end", f"{short(summary['behind_s'])} s"))
    notes = "".join(f"<p>Note: {escape(note)}</p>" for note in document["notes"])
    return (
        f"<div><b>{escape(record['title'])}</b> on {escape(document['trace']['name'])}"
        f"<br><small>{escape(document['device'])}</small>{rows(pairs)}{notes}</div>"
    )


def dictionaries(table: Table) -> list[dict[str, Any]]:
    """The rows of a table as dictionaries."""
    names = table.column_names
    columns = [table[name].to_pylist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


SHOWN = 40
"""Rows of a sweep that a notebook shows."""


def of_sweep(document: Mapping[str, Any], cells: list[dict[str, Any]]) -> str:
    """A sweep as a notebook shows it: the varied keys and the main figures of its first rows."""
    varied = ["trace.file" if key["key"] == "trace" else key["key"] for key in document["varied"]]
    head = [*varied, "scheme", "mean response", "p99", "write amplification", "blocks erased"]
    words = len(varied) + 1
    lines = [row_of([escape(name) for name in head], words, "th")]
    for cell in cells[:SHOWN]:
        begin = [escape(str(cell[key])) for key in [*varied, "scheme"]]
        if cell["outcome"] == "ran":
            times = [micros(cell["response_mean_us"]), micros(cell["response_p99_us"])]
            counts = [short(cell["write_amplification"]), short(cell["erases"])]
            lines.append(row_of([*begin, *times, *counts], words))
        else:
            why = escape(f"{cell['outcome']}: {cell['reason']}")
            lines.append(f"{row_of(begin, words)[:-5]}<td colspan=4 style='text-align:left'>{why}</td></tr>")
    left = len(cells) - SHOWN
    more = f"<p>and {left} more rows: <code>.table</code></p>" if left > 0 else ""
    notes = "".join(f"<p>Note: {escape(note)}</p>" for note in document["notes"])
    return f'<div><small>{escape(document["device"])}</small><table style="{STYLE}">{"".join(lines)}</table>{more}{notes}</div>'


def row_of(cells: list[str], words: int, tag: str = "td") -> str:
    """A row of a table: so many columns of words, then numbers, which end at the same place."""
    sides = (f'style="text-align:{"left" if place < words else "right"};padding:1px 8px"' for place in range(len(cells)))
    return f"<tr>{''.join(f'<{tag} {side}>{cell}</{tag}>' for cell, side in zip(cells, sides, strict=True))}</tr>"


def of_fleet(results: list[dict[str, Any]], failures: str | None) -> str:
    """A fleet as a notebook shows it: how write amplification and the 99th percentile spread over the volumes."""
    lines = [row_of(["scheme", "over volumes", "volumes", "min", "median", "p95", "max"], 2, "th")]
    for result in results:
        figures = (("write_amplification", "write amplification", short), ("response_p99_us", "p99 response time", micros))
        for key, name, tell in figures:
            spread = result[key] or {}
            values = [tell(spread.get(at)) for at in ("min", "median", "p95", "max")]
            lines.append(row_of([escape(result["scheme"]), name, short(spread.get("volumes")), *values], 2))
    lost = f"<p>{escape(failures)}</p>" if failures else ""
    return f'<div><table style="{STYLE}">{"".join(lines)}</table>{lost}</div>'
