"""Drawings in matplotlib."""

from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ._drawing import COLOURS, DASHES, Drawing

MARKERS = ["o", "s", "^", "D", "P", "v", ">"]

STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "legend.frameon": False,
    "figure.dpi": 200,
    "figure.constrained_layout.use": True,
    # Text stays text, in a font that journals take.
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}


def figure(drawing: Drawing) -> Figure:
    """A drawing as wide as a column of a paper, 3.5 inches; belongs to no window."""
    with mpl.rc_context(STYLE):
        height = max(2.5, 0.22 * len(drawing.bars) + 0.8)
        made = Figure(figsize=(3.5, height))
        axes: Axes = made.add_subplot()
        axes.set_title(drawing.title, loc="left")
        axes.set_xlabel(drawing.x.title)
        axes.set_ylabel(drawing.y.title)
        if drawing.x.log:
            axes.set_xscale("log")
        if drawing.y.log:
            axes.set_yscale("log")
        if drawing.cells is not None:
            heat(made, axes, drawing)
        if drawing.bars:
            bars(axes, drawing)
        lines(axes, drawing)
        if drawing.marks:
            below = axes.get_xaxis_transform()
            height_of_all = [0.02] * len(drawing.marks)
            axes.plot(drawing.marks, height_of_all, "|", transform=below, color="#999999", markersize=5, label=drawing.marks_title)
        if drawing.baseline is not None:
            level = axes.axvline if drawing.bars else axes.axhline
            level(drawing.baseline, color="#555555", linestyle="--", linewidth=0.9)
        if len(drawing.styles) > 1 or drawing.marks or any(s.reference for s in drawing.series):
            # Beside the curves: inside there is no place that is always free.
            made.legend(loc="outside lower center", ncols=3)
        # The style is that of this moment: what is drawn later has it too.
        made.canvas.draw()
    return made


def lines(axes: Axes, drawing: Drawing) -> None:
    """Lines and points, one entry of the legend a name."""
    told: set[str] = set()
    for series in drawing.series:
        style = drawing.styles.get(series.name, 0)
        kind: dict[str, Any] = {
            "color": "#888888" if series.reference else COLOURS[style],
            "label": "_" if series.name in told else series.name,
            "drawstyle": "steps-post" if series.steps else "default",
            "linestyle": "-" if series.joined else "none",
        }
        if series.joined and DASHES[style] and not series.reference:
            kind["linestyle"] = (0, tuple(length * 0.6 for length in DASHES[style]))
        if series.points or not series.joined:
            kind["marker"] = MARKERS[style]
        axes.plot(series.x, series.y, **kind)
        told.add(series.name)


def bars(axes: Axes, drawing: Drawing) -> None:
    """Bars, the first on top, and the intervals that the values lie in."""
    places = range(len(drawing.bars))
    axes.barh(places, [bar.value for bar in drawing.bars], color=COLOURS[0], height=0.7)
    for place, bar in zip(places, drawing.bars, strict=True):
        if bar.low is not None and bar.high is not None:
            axes.plot([bar.low, bar.high], [place, place], color="black", linewidth=1.4)
    axes.set_yticks(places, [bar.name for bar in drawing.bars])
    axes.invert_yaxis()
    axes.grid(False, axis="y")


def heat(made: Figure, axes: Axes, drawing: Drawing) -> None:
    """A map of cells."""
    cells = drawing.cells
    assert cells is not None
    extent = (0, len(cells.values[0]) * cells.x_width, len(cells.values) - 0.5, -0.5)
    image = axes.imshow(cells.values, aspect="auto", cmap="cividis", interpolation="nearest", extent=extent)
    axes.grid(False)
    made.colorbar(image, label=cells.title)
