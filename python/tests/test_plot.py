"""Drawings have the numbers of the runs, in Altair and in matplotlib."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import floatgate
from floatgate import plot

LOAD = "skew:space=4096:distinct=2000:writes=6000"


@pytest.fixture(scope="module")
def runs() -> list[floatgate.Run]:
    return [floatgate.simulate(scheme, trace="oltp-postgres") for scheme in ("page", "fast")]


@pytest.fixture(scope="module")
def swept() -> floatgate.Sweep:
    grid = {"device.spare_percent": [15, 25, 40], "scheme": ["page", "fast", "dftl"]}
    return floatgate.sweep(grid, trace="uniform:space=8192:requests=60000:reads=0", device={"dies": 1})


DRAWINGS: dict[str, Callable[[list[floatgate.Run], floatgate.Sweep], plot.Drawing]] = {
    "distribution": lambda runs, swept: plot.distribution(runs),
    "tail": lambda runs, swept: plot.tail(runs),
    "over_time": lambda runs, swept: plot.over_time(runs),
    "bars": lambda runs, swept: plot.bars({"page": runs[0], "both": runs}, baseline="page"),
    "wear": lambda runs, swept: plot.wear(runs[1]),
    "sensitivity": lambda runs, swept: plot.sensitivity(swept, "device.spare_percent"),
    "pareto": lambda runs, swept: plot.pareto(swept),
    "amplification": lambda runs, swept: plot.amplification(swept),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_drawing_is_drawn_by_both(
    name: str, runs: list[floatgate.Run], swept: floatgate.Sweep, tmp_path: Path
) -> None:
    drawing = DRAWINGS[name](runs, swept)
    for ending in ("html", "png", "pdf", "svg"):
        drawing.save(tmp_path / f"{name}.{ending}")
        assert (tmp_path / f"{name}.{ending}").stat().st_size > 4000
    spec = json.dumps(drawing.chart.to_dict())
    values = [series.y[0] for series in drawing.series] + [bar.value for bar in drawing.bars]
    values += drawing.cells.values[0] if drawing.cells else []
    assert values and all(json.dumps(value) in spec for value in values)
    assert drawing._repr_mimebundle_()


def test_lines_have_the_numbers_of_the_runs(runs: list[floatgate.Run]) -> None:
    tail = plot.tail(runs)
    for series, run in zip(tail.series, runs, strict=True):
        p99 = run.record["time"]["response"]["write"]["p99_us"]
        longer = [y for x, y in zip(series.x, series.y, strict=True) if x >= p99]
        assert max(longer) == pytest.approx(0.01, rel=0.2)
    axes = tail.figure.axes[0]
    assert [line.get_label() for line in axes.lines] == ["page", "fast"]
    assert list(axes.lines[0].get_xdata()) == list(tail.series[0].x)  # type: ignore[arg-type]


def test_strokes_stand_where_blocks_were_erased(runs: list[floatgate.Run]) -> None:
    drawing = plot.over_time(runs[1])
    series = runs[1].record["series"]
    grown = [b > a for a, b in zip([0, *series["erases"]], series["erases"], strict=False)]
    assert len(drawing.marks) == sum(grown)
    assert drawing.marks[0] == series["time_s"][grown.index(True)]


def test_the_map_has_every_erase(runs: list[floatgate.Run]) -> None:
    cells = plot.wear(runs[1]).cells
    assert cells is not None
    assert cells.x_width == 1
    assert sum(map(sum, cells.values)) == runs[1].summary["erases"]
    assert len(cells.values) == runs[1].record["device"]["dies"]


def test_bars_have_an_interval_where_there_are_several_runs() -> None:
    seeds = [floatgate.simulate("page", trace=f"{LOAD}:seed={seed}", device={"dies": 1}) for seed in range(4)]
    drawing = plot.bars({"one": seeds[0], "four": seeds}, "write_amplification", baseline="one")
    one, four = drawing.bars
    assert (one.value, one.low) == (1.0, None)
    assert four.low is not None and four.high is not None
    assert four.low < four.value < four.high


def test_the_closed_formula_is_near_what_it_is_about(swept: floatgate.Sweep) -> None:
    drawing = plot.amplification(swept)
    formula = next(series for series in drawing.series if series.reference)
    page = next(series for series in drawing.series if series.name == "page")
    assert list(formula.x) == list(page.x)
    for expected, measured in zip(formula.y, page.y, strict=True):
        assert measured == pytest.approx(expected, rel=0.25)


def test_the_front_is_below_all_cells(swept: floatgate.Sweep) -> None:
    drawing = plot.pareto(swept)
    front = next(series for series in drawing.series if series.reference)
    best = list(zip(front.x, front.y, strict=True))
    for series in drawing.series:
        for x, y in zip(series.x, series.y, strict=True):
            assert any(a <= x and b <= y for a, b in best)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda runs, swept: plot.tail([runs[0], runs[0]]), "two runs are called page"),
        (lambda runs, swept: plot.over_time(runs, "latency"), "no column 'latency'"),
        (lambda runs, swept: plot.bars({"a": runs[0]}, "latency"), "no figure 'latency'"),
        (lambda runs, swept: plot.bars({"a": runs[0]}, baseline="b"), "no run is called 'b'"),
        (lambda runs, swept: plot.sensitivity(swept, "device.dies"), "no column 'device.dies'"),
        (lambda runs, swept: plot.tail(runs).save("a.gif"), "does not tell the format"),
    ],
)
def test_what_cannot_be_drawn_is_told(
    draw: Callable[..., Any], message: str, runs: list[floatgate.Run], swept: floatgate.Sweep
) -> None:
    with pytest.raises(floatgate.InputError, match=message):
        draw(runs, swept)


def test_styles_differ_in_more_than_colour() -> None:
    from floatgate.plot._drawing import COLOURS, DASHES, SHAPES
    from floatgate.plot._matplotlib import MARKERS

    for kinds in (COLOURS, [str(dash) for dash in DASHES], SHAPES, MARKERS):
        assert len(set(kinds)) == len(COLOURS)
