"""What people expect to see of runs and sweeps. Every function gives a :class:`Drawing`: a notebook shows it in Altair, and
``.save("fig.pdf")`` writes it by matplotlib, one column of a paper wide. Colours are told apart by the colour-blind, and lines and
points differ in their form too.

>>> import floatgate
>>> run = floatgate.simulate("fast", trace="skew:writes=2000")
>>> floatgate.plot.tail(run).title
'Response times, tail'
"""

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any, Literal, TypeAlias, Union

from .._run import Run
from .._sweep import Sweep
from ..errors import InputError
from ._drawing import Axis, Bar, Cells, Drawing, Series

__all__ = [
    "Drawing",
    "amplification",
    "bars",
    "distribution",
    "over_time",
    "pareto",
    "sensitivity",
    "tail",
    "wear",
]

Runs: TypeAlias = Union[Run, Iterable[Run], Mapping[str, Run]]
"""Runs; what they are called is their scheme, unless they come by names."""

Rows: TypeAlias = Union[Sweep, Sequence[Mapping[str, Any]]]
"""A sweep, or rows of sweeps."""

Kind: TypeAlias = Literal["read", "write"]

UNITS = {"_us": "us", "_s": "s", "_bytes": "bytes", "_percent": "%", "_uj": "uJ", "iops": "1/s"}
"""The units that names of figures end in."""


def named(runs: Runs) -> dict[str, Run]:
    """Runs by their names."""
    if isinstance(runs, Run):
        return {runs.record["scheme"]: runs}
    if isinstance(runs, Mapping):
        return dict(runs)
    found: dict[str, Run] = {}
    for run in runs:
        name = run.record["scheme"]
        if name in found:
            raise InputError(f"two runs are called {name}: give them names, as {{'a': run, 'b': other}}")
        found[name] = run
    return found


def spoken(name: str) -> str:
    """A figure with its unit.

    >>> spoken("response_p99_us"), spoken("device.log_percent"), spoken("write_amplification")
    ('response p99 (us)', 'log (%)', 'write amplification')
    """
    stem = name.rsplit(".", 1)[-1]
    for end, unit in UNITS.items():
        if stem.endswith(end):
            stem = f"{stem if end == 'iops' else stem[: -len(end)]} ({unit})"
            break
    return stem.replace("_", " ")


def headed(title: str) -> str:
    """A figure as a heading: without its unit."""
    return title.split(" (")[0].capitalize()


def measured(name: str, values: Iterable[float]) -> tuple[str, float]:
    """A figure in words, and what to divide it by: times and bytes in a unit that suits the largest.

    >>> measured("response_mean_us", [20.0, 3.5e8]), measured("erases", [3]), measured("map_memory_bytes", [61440.0])
    (('response mean (s)', 1000000.0), ('erases', 1.0), ('map memory (KiB)', 1024.0))
    """
    title, largest = spoken(name), max(values, default=0.0)
    larger = (("us", "s", 1e6), ("us", "ms", 1e3), ("bytes", "GiB", 2.0**30), ("bytes", "MiB", 2.0**20), ("bytes", "KiB", 2.0**10))
    for small, unit, factor in larger:
        if title.endswith(f"({small})") and largest >= 10 * factor:
            return f"{title[: -len(small) - 1]}{unit})", factor
    return title, 1.0


def distribution(runs: Runs, of: Kind = "write") -> Drawing:
    """The share of requests whose response took no longer."""
    series = [
        Series(name, [ns / 1000 for ns, _ in points], [share for _, share in points], steps=True)
        for name, points in points_of(runs, of)
    ]
    return Drawing(f"Response times of {of}s", Axis("response (us)", log=True), Axis("share within"), series)


def tail(runs: Runs, of: Kind = "write") -> Drawing:
    """The share of requests whose response took longer, down to the rarest."""
    series = []
    for name, points in points_of(runs, of):
        # Nothing took longer than the longest: on a logarithmic axis that has no place.
        rest = [(ns / 1000, 1 - share) for ns, share in points if share < 1 - 1e-12]
        series.append(Series(name, [x for x, _ in rest], [y for _, y in rest], steps=True))
    x, y = Axis("response (us)", log=True), Axis("share that took longer", log=True)
    return Drawing("Response times, tail", x, y, series)


def points_of(runs: Runs, of: Kind) -> list[tuple[str, list[tuple[float, float]]]]:
    """The points of the distributions of runs."""
    found = [(name, run.record["distribution"][of]) for name, run in named(runs).items()]
    for name, points in found:
        if not points:
            raise InputError(f"{name} had no {of}s")
    return found


def over_time(runs: Runs, figure: str = "response_max_us") -> Drawing:
    """A column of the time series (docs/series.md); below it a stroke wherever merges or collections of the first run were at work."""
    chosen = named(runs)
    found: dict[str, list[tuple[float, float]]] = {}
    for name, run in chosen.items():
        columns = run.record["series"]
        if figure not in columns:
            raise InputError(f"a time series has no column {figure!r}; there are {', '.join(columns)}")
        found[name] = [(t, y) for t, y in zip(columns["time_s"], columns[figure], strict=True) if y is not None]
    title, unit = measured(figure, (y for pairs in found.values() for _, y in pairs))
    series = [
        Series(name, [t for t, _ in pairs], [y / unit for _, y in pairs], steps=True) for name, pairs in found.items()
    ]
    first, run = next(iter(chosen.items()))
    columns = run.record["series"]
    erases, times = columns["erases"], columns["time_s"]
    marks = [t for t, before, now in zip(times, [0, *erases], erases, strict=False) if now > before]
    return Drawing(headed(title), Axis("time (s)"), Axis(title), series, marks=marks, marks_title=f"erases of {first}")


def bars(
    runs: Mapping[str, Run | Sequence[Run]], figure: str = "response_mean_us", baseline: str | None = None
) -> Drawing:
    """A figure of the summary as bars, relative to one of the runs if a ``baseline`` is named. Of several runs under one name (other
    seeds, say) the bar is the mean, and the line across it the interval that holds the true mean with 95 % confidence by Student's t;
    the baseline is taken for known."""
    values = {name: numbers(of if isinstance(of, Sequence) else [of], figure) for name, of in runs.items()}
    if baseline is not None and baseline not in values:
        raise InputError(f"no run is called {baseline!r}; there are {', '.join(values)}")
    title, unit = measured(figure, (max(found) for found in values.values()))
    if baseline is not None:
        title, unit = f"{spoken(figure).split(' (')[0]}, relative to {baseline}", fmean(values[baseline])
    if unit == 0:
        raise InputError(f"{figure} of {baseline} is 0: nothing is relative to that")
    drawn = [bar_of(name, [value / unit for value in found]) for name, found in values.items()]
    return Drawing(headed(title), Axis(title), Axis(""), bars=drawn, baseline=None if baseline is None else 1.0)


def numbers(runs: Sequence[Run], figure: str) -> list[float]:
    """A figure of each run."""
    found = []
    for run in runs:
        if figure not in run.summary:
            raise InputError(f"a summary has no figure {figure!r}; there are {', '.join(run.summary)}")
        value = run.summary[figure]
        if value is None:
            raise InputError(f"{figure} of {run!r} has no value")
        found.append(float(value))
    return found


STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
           2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]
"""The 97.5 % quantile of Student's t for 1, 2, ... 30 degrees of freedom; beyond, that of the normal distribution is near."""


def bar_of(name: str, values: Sequence[float]) -> Bar:
    """A bar of the mean, with the interval that holds the true one.

    >>> bar = bar_of("a", [1.0, 2.0, 3.0])
    >>> f"{bar.low:.3f} {bar.value:.3f} {bar.high:.3f}"
    '-0.484 2.000 4.484'
    """
    mean = fmean(values)
    if len(values) < 2:
        return Bar(name, mean)
    freedom = len(values) - 1
    quantile = STUDENT[freedom - 1] if freedom <= len(STUDENT) else 1.960
    half = quantile * stdev(values) / sqrt(len(values))
    return Bar(name, mean, mean - half, mean + half)


MAP_CELLS = 256
"""Most cells of a die in a map; more blocks share them."""


def wear(run: Run) -> Drawing:
    """Erases of the blocks of every die; where a die has many, cells are means of neighbours."""
    dies, blocks = run.record["device"]["dies"], run.record["device"]["blocks"]
    erases = [int(number) for number in run.blocks["erases"].to_pylist()]
    width = -(-blocks // MAP_CELLS)
    values = [
        [fmean(die[at : at + width]) for at in range(0, blocks, width)]
        for die in (erases[number * blocks : (number + 1) * blocks] for number in range(dies))
    ]
    return Drawing("Wear", Axis("block"), Axis("die"), cells=Cells(values, "erases", width))


def rows_of(rows: Rows, *needed: str) -> list[Mapping[str, Any]]:
    """The rows that ran and have values of all that is drawn."""
    found = rows.rows if isinstance(rows, Sweep) else list(rows)
    for name in needed:
        if found and name not in found[0]:
            raise InputError(f"the sweep has no column {name!r}; there are {', '.join(found[0])}")
    whole = [row for row in found if all(row[name] is not None for name in needed)]
    if not whole:
        raise InputError("no cell of the sweep ran")
    return whole


def by_name(rows: Sequence[Mapping[str, Any]], by: str) -> dict[str, list[Mapping[str, Any]]]:
    """Rows by the value of a column."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row[by]), []).append(row)
    return found


def sensitivity(rows: Rows, x: str, y: str = "response_mean_us", by: str = "scheme") -> Drawing:
    """A figure of a sweep against a varied key, a line a scheme; where other keys vary too, the mean over them."""
    found = rows_of(rows, x, y, by)
    title, unit = measured(y, (row[y] for row in found))
    series = []
    for name, own in by_name(found, by).items():
        means = {at: fmean(row[y] for row in own if row[x] == at) / unit for at in sorted({row[x] for row in own})}
        series.append(Series(name, list(means), list(means.values()), points=True))
    return Drawing(f"{headed(title)} by {headed(spoken(x)).lower()}", Axis(spoken(x)), Axis(title), series)


def pareto(
    rows: Rows, x: str = "map_memory_bytes", y: str = "response_mean_us", by: str = "scheme"
) -> Drawing:
    """Two figures against each other, less of either being better; the grey line joins the cells that no other cell beats in
    both."""
    found = rows_of(rows, x, y, by)
    (x_title, x_unit), (y_title, y_unit) = (measured(name, (row[name] for row in found)) for name in (x, y))
    series = [
        Series(name, [row[x] / x_unit for row in own], [row[y] / y_unit for row in own], joined=False)
        for name, own in by_name(found, by).items()
    ]
    best = unbeaten([point for one in series for point in zip(one.x, one.y, strict=True)])
    front = Series("unbeaten", [a for a, _ in best], [b for _, b in best], steps=True, reference=True)
    log_x, log_y = (min(row[name] for row in found) > 0 for name in (x, y))
    title = f"{headed(y_title)} against {headed(x_title).lower()}"
    return Drawing(title, Axis(x_title, log_x), Axis(y_title, log_y), [*series, front])


def unbeaten(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other one beats in both numbers, in ascending order of the first.

    >>> unbeaten([(1, 9), (2, 9), (3, 4), (2, 5), (4, 4)])
    [(1, 9), (2, 5), (3, 4)]
    """
    best: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if not best or y < best[-1][1]:
            best.append((x, y))
    return best


def amplification(rows: Rows, by: str = "scheme") -> Drawing:
    """Write amplification against spare space, and the closed formula for uniform writes and greedy victims on the same devices
    (docs/spec/analytic.md)."""
    found = rows_of(rows, "spare_percent", "write_amplification", by)
    series = []
    for name, own in by_name(found, by).items():
        points = sorted((row["spare_percent"], row["write_amplification"]) for row in own)
        series.append(Series(name, [x for x, _ in points], [y for _, y in points], points=True))
    formula = sorted({(row["spare_percent"], row["uniform_write_amplification"]) for row in found
                      if row["uniform_write_amplification"] is not None})
    if formula:
        series.append(Series("closed formula", [x for x, _ in formula], [y for _, y in formula], reference=True))
    return Drawing("Write amplification by spare space", Axis("spare blocks (% of the data blocks)"), Axis("write amplification"), series)
