"""Drawings in Altair."""

from typing import Any

import altair as alt

from ._drawing import COLOURS, DASHES, SHAPES, Axis, Drawing

WIDTH, HEIGHT = 560, 320


def chart(drawing: Drawing) -> Any:
    """All layers of a drawing."""
    layers: list[Any] = []
    if drawing.cells is not None:
        layers.append(heat(drawing))
    if drawing.marks:
        layers.append(marks(drawing))
    if drawing.bars:
        layers += bars(drawing)
    if drawing.series:
        layers += lines(drawing)
    if drawing.baseline is not None and not drawing.bars:
        level = alt.Chart(data([{"y": drawing.baseline}]))
        layers.append(level.mark_rule(strokeDash=[4, 4], color="#555").encode(y="y:Q"))
    whole: Any = alt.layer(*layers).properties(title=drawing.title, width=WIDTH, height=HEIGHT)
    return whole if drawing.bars or drawing.cells else whole.interactive()


def data(rows: list[dict[str, Any]]) -> Any:
    """Rows inside the chart."""
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def scale(axis: Axis) -> alt.Scale:
    """Its scale; a line need not begin at zero."""
    return alt.Scale(type="log") if axis.log else alt.Scale(zero=False)


def lines(drawing: Drawing) -> list[Any]:
    """Lines and points, and the grey lines to hold them against."""
    names = list(drawing.styles)
    style = [drawing.styles[name] for name in names]
    found: list[Any] = []
    for series in drawing.series:
        rows = [
            {"name": series.name, "x": x, "y": y} for x, y in zip(series.x, series.y, strict=True)
        ]
        base = alt.Chart(data(rows)).encode(
            x=alt.X("x:Q", title=drawing.x.title, scale=scale(drawing.x)),
            y=alt.Y("y:Q", title=drawing.y.title, scale=scale(drawing.y)),
            tooltip=[
                alt.Tooltip("name:N", title="run"),
                alt.Tooltip("x:Q", title=drawing.x.title, format=".5~g"),
                alt.Tooltip("y:Q", title=drawing.y.title, format=".5~g"),
            ],
        )
        path: dict[str, Any] = {"interpolate": "step-after"} if series.steps else {}
        if series.reference:
            found.append(base.mark_line(color="#888", strokeWidth=1.5, **path))
            label = alt.Chart(data(rows[-1:])).encode(x="x:Q", y="y:Q", text="name:N")
            found.append(label.mark_text(align="right", dy=-8, color="#666"))
            continue
        legend = alt.Legend(title=None)
        colour = alt.Color("name:N", scale=alt.Scale(domain=names, range=[COLOURS[i] for i in style]), legend=legend)
        if series.joined:
            dash = alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=[DASHES[i] for i in style]), legend=legend)
            found.append(base.mark_line(**path).encode(color=colour, strokeDash=dash))
        if series.points or not series.joined:
            shape = alt.Shape("name:N", scale=alt.Scale(domain=names, range=[SHAPES[i] for i in style]), legend=legend)
            found.append(base.mark_point(filled=True, size=55).encode(color=colour, shape=shape))
    return found


def bars(drawing: Drawing) -> list[Any]:
    """Bars, and the intervals that the values lie in."""
    rows = [
        {"name": bar.name, "value": bar.value, "low": bar.low, "high": bar.high} for bar in drawing.bars
    ]
    base = alt.Chart(data(rows)).encode(y=alt.Y("name:N", title=drawing.y.title, sort=None))
    width = alt.X("value:Q", title=drawing.x.title)
    tooltip = [alt.Tooltip(f"{name}:{kind}", format=".4~g" if kind == "Q" else "") for name, kind in
               [("name", "N"), ("value", "Q"), ("low", "Q"), ("high", "Q")]]
    drawn = base.mark_bar(color=COLOURS[0]).encode(x=width, tooltip=tooltip)
    found: list[Any] = [drawn]
    if any(bar.low is not None for bar in drawing.bars):
        found.append(base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"))
    if drawing.baseline is not None:
        rule = alt.Chart(data([{"x": drawing.baseline}]))
        found.append(rule.mark_rule(strokeDash=[4, 4], color="#555").encode(x="x:Q"))
    return found


def marks(drawing: Drawing) -> Any:
    """Short strokes below the curves."""
    rows = [{"x": x} for x in drawing.marks]
    strokes = alt.Chart(data(rows)).mark_tick(color="#999", thickness=1, size=10, orient="vertical")
    return strokes.encode(
        x=alt.X("x:Q", title=drawing.x.title, scale=scale(drawing.x)),
        y=alt.value(HEIGHT - 5),
        tooltip=[alt.Tooltip("x:Q", title=drawing.marks_title, format=".5~g")],
    )


def heat(drawing: Drawing) -> Any:
    """A map of cells."""
    cells = drawing.cells
    assert cells is not None
    rows = [
        {"x": x * cells.x_width, "y": y, "value": value}
        for y, line in enumerate(cells.values)
        for x, value in enumerate(line)
    ]
    return alt.Chart(data(rows)).mark_rect().encode(
        x=alt.X("x:O", title=drawing.x.title, axis=alt.Axis(labelOverlap=True, ticks=False)),
        y=alt.Y("y:O", title=drawing.y.title, axis=alt.Axis(labelOverlap=True, ticks=False)),
        color=alt.Color("value:Q", title=cells.title, scale=alt.Scale(scheme="cividis")),
        tooltip=[alt.Tooltip("y:O", title=drawing.y.title), alt.Tooltip("x:O", title=drawing.x.title),
                 alt.Tooltip("value:Q", title=cells.title, format=".4~g")],
    )
