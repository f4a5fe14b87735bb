"""A run by Python is the run of the command."""

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import floatgate

from .conftest import LOAD, Command, document

SAME: list[tuple[list[str], Callable[[], floatgate.Run]]] = [
    (
        ["--scheme", "fast", "--trace", LOAD],
        lambda: floatgate.simulate("fast", trace=LOAD),
    ),
    (
        ["--scheme", "page:separation=sepbit", "--trace", LOAD, "--set", "device.dies=2"],
        lambda: floatgate.simulate("page:separation=sepbit", trace=LOAD, device={"dies": np.int64(2)}),
    ),
    (
        ["--scheme", "last++", "--trace", LOAD, "--set", "scheme.log_blocks=8", "--set", "device.dies=1"],
        lambda: floatgate.simulate("last++", trace=LOAD, options={"log_blocks": 8}, device={"dies": 1}),
    ),
    (
        ["--trace", LOAD, "--set", 'run.ageing=["overwrite:0.5"]', "--set", "host.arrivals=closed"],
        lambda: floatgate.simulate(
            trace=LOAD, run={"ageing": ["overwrite:0.5"]}, **{"host.arrivals": "closed"}
        ),
    ),
    (
        ["--scheme", "kast", "--trace", LOAD, "--slowest", "3"],
        lambda: floatgate.simulate("kast", trace=LOAD, slowest=3),
    ),
    (["--scheme", "fast"], lambda: floatgate.simulate("fast")),
]


@pytest.mark.parametrize(("words", "run"), SAME)
def test_the_same_record_as_by_the_command(
    command: Command, words: list[str], run: Callable[[], floatgate.Run]
) -> None:
    assert run().document == document(command, *words)


def test_the_same_text_and_tables_as_by_the_command(command: Command, tmp_path: Path) -> None:
    words = ["--trace", LOAD, "--requests-out", "r.parquet", "--series-out", "s.parquet"]
    printed = command("run", "--scheme", "fast", *words, "--blocks-out", "b.parquet")
    run = floatgate.simulate("fast", trace=LOAD, requests=True)
    assert printed.stdout.strip() == str(run).strip()
    for name, table in [("r", run.requests), ("s", run.timeseries), ("b", run.blocks)]:
        assert pl.DataFrame(table).equals(pl.read_parquet(tmp_path / f"{name}.parquet")), name
    assert run.requests.num_rows == 6000


def test_the_timeline_has_every_operation() -> None:
    run = floatgate.simulate("fast", trace=LOAD, timeline=True)
    timeline = pl.DataFrame(run.timeline)
    programs = run.counters["flash"]["programs"]
    host = timeline.filter(does="program", cause="host")
    assert host["pages"].sum() == programs["host"]
    assert timeline.filter(does="erase")["pages"].sum() == run.summary["erases"]
    assert (timeline["end_ns"] > timeline["start_ns"]).all()
    assert timeline["die"].max() < run.record["device"]["dies"]


def test_tables_open_where_people_work() -> None:
    run = floatgate.simulate("fast", trace=LOAD, requests=True)
    rows = run.requests
    writes = duckdb.sql("select count(*) from rows where op = 'W'").fetchall()
    assert writes == [(6000,)]
    frame = pd.DataFrame({name: rows[name].to_numpy() for name in ("arrival_ns", "end_ns")})
    response_us = (frame["end_ns"] - frame["arrival_ns"]) / 1000
    assert response_us.max() == run.summary["response_max_us"]


def frames() -> Iterator[tuple[str, Any]]:
    table = floatgate.read_trace(LOAD)
    frame = pl.DataFrame(table)
    yield "arro3", table
    yield "polars", frame
    yield "polars, other types", frame.with_columns(
        pl.col("offset").cast(pl.Int64), pl.col("op").cast(pl.Categorical)
    )
    yield "numpy", {name: frame[name].to_numpy() for name in ("arrival_ns", "op", "offset", "bytes")}
    yield "lists", {name: frame[name].to_list() for name in ("op", "offset", "bytes")}
    yield "pandas", pd.DataFrame({name: frame[name].to_numpy() for name in ("op", "offset", "bytes")})


@pytest.mark.parametrize(("kind", "frame"), list(frames()))
def test_traces_from_frames(kind: str, frame: Any) -> None:
    run = floatgate.simulate("fast", trace=frame, device={"dies": 1})
    of_file = floatgate.simulate("fast", trace=LOAD, device={"dies": 1})
    assert run.counters == of_file.counters, kind
    if kind == "arro3":
        assert run.summary == of_file.summary


def test_a_frame_is_read_as_the_same_table_in_a_file(command: Command, tmp_path: Path) -> None:
    assert command("trace", "convert", "desktop", "d.parquet").returncode == 0
    words = ["--scheme", "fast", "--trace", "d.parquet"]
    by_file = document(command, *words)
    by_frame = floatgate.simulate("fast", trace=pl.read_parquet(tmp_path / "d.parquet"))
    assert by_frame.record == by_file["results"][0]
    assert pl.DataFrame(floatgate.read_trace("desktop")).equals(pl.read_parquet(tmp_path / "d.parquet"))


WRONG: list[tuple[list[str], dict[str, Any]]] = [
    (["--set", "device.dyes=4"], {"device": {"dyes": 4}}),
    (["--scheme", "fsat"], {"scheme": "fsat"}),
    (["--set", "device.part=mlc9"], {"device": "mlc9"}),
    (["--scheme", "fast", "--set", "scheme.log_blocks=1000000"], {"scheme": "fast", "options": {"log_blocks": 10**6}}),
    (["--trace", "nowhere.csv"], {"trace": "nowhere.csv"}),
    (["--trace", "zipf:spaces=3"], {"trace": "zipf:spaces=3"}),
    (["--slowest", "99999999"], {"slowest": 99999999}),
]


@pytest.mark.parametrize(("words", "given"), WRONG)
def test_the_same_message_as_by_the_command(
    command: Command, words: list[str], given: dict[str, Any]
) -> None:
    ran = command("run", *words)
    assert ran.returncode == 2
    with pytest.raises(floatgate.InputError) as raised:
        floatgate.simulate(**given)
    assert ran.stderr.rstrip().endswith(f"error: {raised.value}")
    assert isinstance(raised.value, floatgate.FloatgateError)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"op": ["W"], "offset": [0]}, 'no column "bytes"'),
        ({"op": ["W"], "offset": [0], "bytes": [1], "size": [1]}, '"size" of no known meaning'),
        ({"op": ["W", "X"], "offset": [0, 0], "bytes": [1, 1]}, 'row 1 of the frame: op is "X"'),
        ({"op": ["W"], "offset": np.array([-1]), "bytes": [1]}, '"offset"'),
        ({"op": ["W"], "offset": [None], "bytes": [1]}, "row 0 of the frame: offset is empty"),
        ({"op": ["W"], "offset": [0], "bytes": [1], "stream": [65535]}, "stream 65535"),
        ({"op": ["W"], "offset": [2**64 - 1], "bytes": [2]}, "ends beyond 2^64"),
    ],
)
def test_frames_that_are_no_traces(frame: dict[str, Any], message: str) -> None:
    with pytest.raises(floatgate.InputError, match=message.replace("^", r"\^")):
        floatgate.simulate(trace=frame)


def test_what_is_no_trace_and_no_setting_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="a trace is a file"):
        floatgate.simulate(trace=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a setting is a number"):
        floatgate.simulate(device={"dies": {}})  # type: ignore[dict-item]


LONG = "uniform:space=65536:requests=100000000"
"""Longer than any test may take."""


def test_ctrl_c_ends_a_run_and_leaves_nothing(tmp_path: Path) -> None:
    phases = set()

    def tell(phase: str, done: int, total: int) -> None:
        phases.add(phase)
        if phase == "ages":
            _thread.interrupt_main()

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        floatgate.simulate(
            trace=LOAD, run={"ageing": ["overwrite:100"] * 100}, progress=tell, save_state=tmp_path / "a.state"
        )
    assert time.monotonic() - begun < 30
    assert "ages" in phases
    assert list(tmp_path.iterdir()) == []
    assert floatgate.simulate(trace=LOAD).summary["erases"] > 0  # type: ignore[operator]


def test_ctrl_c_while_the_trace_is_read() -> None:
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        floatgate.simulate(trace=LONG, progress=False)
    timer.join()


def test_an_error_of_the_progress_function_ends_the_run() -> None:
    def tell(phase: str, done: int, total: int) -> None:
        if done > 0:
            assert done <= total
            raise ArithmeticError("enough")

    with pytest.raises(ArithmeticError, match="enough"):
        floatgate.simulate(trace="uniform:space=65536:requests=3000000", progress=tell)


def test_other_threads_go_on_meanwhile() -> None:
    done = threading.Event()
    ticks = 0

    def count() -> None:
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=count)
    thread.start()
    begun = time.monotonic()
    floatgate.simulate(trace="uniform:space=65536:requests=1000000", progress=False)
    seconds = time.monotonic() - begun
    done.set()
    thread.join()
    assert ticks > seconds * 50


def test_what_was_not_kept_is_told() -> None:
    run = floatgate.simulate(trace=LOAD)
    with pytest.raises(floatgate.FloatgateError, match="requests=True"):
        _ = run.requests


def test_a_run_as_people_see_it() -> None:
    run = floatgate.simulate("fast", trace=LOAD)
    assert repr(run).startswith("<floatgate.Run: fast on skew:")
    html = run._repr_html_()
    assert "write amplification" in html
    assert html.count("<table") == html.count("</table>") == 1


def test_a_run_begins_with_a_saved_device(tmp_path: Path) -> None:
    ageing = {"ageing": ["overwrite:0.5"]}
    first = floatgate.simulate("fast", trace=LOAD, run=ageing, save_state=tmp_path / "a.state")
    again = floatgate.simulate(trace=LOAD, load_state=tmp_path / "a.state")
    assert again.counters == first.counters


def test_the_report_is_that_of_the_command(command: Command, tmp_path: Path) -> None:
    # Of several flows the command draws no slowest request either.
    config = tmp_path / "flows.toml"
    config.write_text('[[flow]]\nname = "a"\ntrace = "desktop"\n[[flow]]\nname = "b"\ntrace = "desktop"\n')
    assert command("run", "--config", str(config), "--report", "c.html").returncode == 0
    floatgate.simulate(config=config).report(tmp_path / "p.html")
    assert (tmp_path / "p.html").read_bytes() == (tmp_path / "c.html").read_bytes()
