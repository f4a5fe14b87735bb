"""Results in words, and as they look in a notebook."""

from collections.abc import Mapping
from html import escape
from typing import Any

from arro3.core import Table

STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"


def micros(us: float | None) -> str:
    """A time in us, in a unit that suits it.

    >>> micros(424.0), micros(2680.0), micros(1.01e8), micros(None)
    ('424 us', '2.68 ms', '101 s', '-')
    """
    if us is None:
        return "-"
    for unit, factor in (("us", 1.0), ("ms", 1e3)):
        if abs(us) < 1000 * factor:
            return f"{us / factor:.3g} {unit}"
    return f"{us / 1e6:.3g} s"


def short(value: float | int | None) -> str:
    """A number with three digits, or in full if it is a count."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


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
    cells = (
        f'<tr><th style="text-align:left;font-weight:normal">{escape(name)}</th>'
        f'<td style="text-align:right">{escape(value)}</td></tr>'
        for name, value in pairs
    )
    return f'<table style="{STYLE}">{"".join(cells)}</table>'


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
        ("energy", f"{summary['energy_uj'] / 1e6:.3g} J"),
    ]
    if summary["behind_s"] is not None:
        pairs.append(("behind at the end", f"{summary['behind_s']:.3g} s"))
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
    lines = [row_of([escape(name) for name in head], "th")]
    for cell in cells[:SHOWN]:
        begin = [escape(str(cell[key])) for key in [*varied, "scheme"]]
        if cell["outcome"] == "ran":
            times = [micros(cell["response_mean_us"]), micros(cell["response_p99_us"])]
            counts = [short(cell["write_amplification"]), short(cell["erases"])]
            lines.append(row_of([*begin, *times, *counts]))
        else:
            why = escape(f"{cell['outcome']}: {cell['reason']}")
            lines.append(f"{row_of(begin)[:-5]}<td colspan=4 style='text-align:left'>{why}</td></tr>")
    left = len(cells) - SHOWN
    more = f"<p>and {left} more rows: <code>.table</code></p>" if left > 0 else ""
    notes = "".join(f"<p>Note: {escape(note)}</p>" for note in document["notes"])
    return f'<div><small>{escape(document["device"])}</small><table style="{STYLE}">{"".join(lines)}</table>{more}{notes}</div>'


def row_of(cells: list[str], tag: str = "td") -> str:
    """A row of a table."""
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def of_fleet(results: list[dict[str, Any]], failures: str | None) -> str:
    """A fleet as a notebook shows it: how write amplification and the 99th percentile spread over the volumes."""
    lines = [row_of(["scheme", "volumes", "figure", "min", "median", "p95", "max"], "th")]
    for result in results:
        for key, tell in (("write_amplification", short), ("response_p99_us", micros)):
            spread = result[key] or {}
            values = [tell(spread.get(at)) for at in ("min", "median", "p95", "max")]
            lines.append(row_of([escape(result["scheme"]), short(spread.get("volumes")), key.replace("_", " "), *values]))
    lost = f"<p>{escape(failures)}</p>" if failures else ""
    return f'<div><table style="{STYLE}">{"".join(lines)}</table>{lost}</div>'
