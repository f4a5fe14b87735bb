"""Traces as tables, and what is in them."""

import json
from pathlib import Path

import polars as pl
import pytest

import floatgate

from .conftest import LOAD, Command


def test_the_same_statistics_as_by_the_command(command: Command) -> None:
    ran = command("trace", "info", "desktop", "--json", "--log-window", "4096")
    assert floatgate.trace_info("desktop", log_window=4096) == json.loads(ran.stdout)


def test_the_statistics_of_a_frame() -> None:
    frame = pl.DataFrame(floatgate.read_trace(LOAD))
    assert floatgate.trace_info(frame)["statistics"] == floatgate.trace_info(LOAD)["statistics"]
    writes = floatgate.trace_info(frame.head(10))["statistics"]["writes"]
    assert writes == 10


def test_columns_are_named_by_the_user(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("7,8,w,512\n8,16,r,1024\n")
    table = floatgate.read_trace(file, columns="time:s,offset:sectors,op,size:B")
    assert table["op"].to_pylist() == ["W", "R"]
    assert table["offset"].to_pylist() == [4096, 8192]
    assert table["arrival_ns"].to_pylist() == [0, 10**9]


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("time_ns,op,offset,size\n0,W,0,512\nnonsense\n")
    with pytest.raises(floatgate.InputError, match="line 3"):
        floatgate.read_trace(file)
    with pytest.raises(floatgate.InputError, match="nowhere"):
        floatgate.trace_info("nowhere")
