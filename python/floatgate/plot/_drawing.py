"""What is drawn, in numbers: one description for Altair and for matplotlib."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
"""The palette of Okabe and Ito, which the colour-blind tell apart; yellow, hard to see on white, is left out."""

DASHES = [[], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3], [10, 3]]
"""Lines differ in more than their colour: in print too."""

SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
"""And so do points."""


@dataclass(frozen=True)
class Axis:
    """A quantity with its unit."""

    title: str
    log: bool = False


@dataclass(frozen=True)
class Series:
    """Points of one name, perhaps joined."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    joined: bool = True
    points: bool = False
    steps: bool = False
    reference: bool = False
    """A line to hold the others against: grey, without a mark."""


@dataclass(frozen=True)
class Bar:
    """A value with the interval that it lies in."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Cells:
    """Values over two whole numbers: ``values[y][x]``; ``x_width`` numbers share a cell."""

    values: Sequence[Sequence[float]]
    title: str
    x_width: int = 1


@dataclass(frozen=True)
class Drawing:
    """A drawing: :attr:`chart` is it in Altair, for looking; :attr:`figure` in matplotlib, for papers. A notebook shows the
    chart."""

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series] = ()
    bars: Sequence[Bar] = ()
    cells: Cells | None = None
    marks: Sequence[float] = ()
    """Places on the x axis that are marked."""
    marks_title: str = ""
    baseline: float | None = None
    """A level that is marked."""
    styles: dict[str, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for series in self.series:
            if not series.reference:
                self.styles.setdefault(series.name, len(self.styles) % len(COLOURS))

    @property
    def chart(self) -> Any:
        """As an Altair chart, to zoom and to point at."""
        from . import _altair

        return _altair.chart(self)

    @property
    def figure(self) -> "Figure":
        """As a matplotlib figure, as wide as a column of a paper."""
        from . import _matplotlib

        return _matplotlib.figure(self)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes it: ``.pdf``, ``.svg``, ``.png``, ``.eps`` and ``.pgf`` by matplotlib; ``.html`` (which needs no network) and
        ``.json`` by Altair."""
        path = Path(path)
        match path.suffix:
            case ".html":
                self.chart.save(path, inline=True)
            case ".json":
                self.chart.save(path)
            case ".pdf" | ".svg" | ".png" | ".eps" | ".pgf":
                self.figure.savefig(path)
            case _:
                raise InputError(
                    f"{path}: the file name does not tell the format\n  help: end it in .pdf, .svg, .png, .html or .json"
                )

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        return self.chart._repr_mimebundle_(*args, **kwargs)
