"""A fleet by Python has the rows of the command."""

import _thread
import json
import threading
import time
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import floatgate

from .conftest import Command


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    """Three volumes in two files; one ends beyond its device."""
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    lines = [f"{i % 2},W,{(i * 37 % 500) * 4096},4096,{i * 1000}" for i in range(3000)]
    first.write_text("\n".join(lines) + "\n")
    second.write_text("".join(f"7,W,{i % 50 * 4096},8192,{i * 500}\n" for i in range(1000)))
    return [first, second]


def test_the_same_rows_as_by_the_command(command: Command, tmp_path: Path, traces: list[Path]) -> None:
    words = ["fleet", *map(str, traces), "--scheme", "page,fast", "--json", "--out", "f.parquet"]
    printed = command(*words)
    assert printed.returncode == 0, printed.stderr
    replayed = floatgate.fleet(traces, ["page", "fast"])
    assert_frame_equal(pl.DataFrame(replayed.table), pl.read_parquet(tmp_path / "f.parquet"))
    assert replayed.document == json.loads(printed.stdout)
    assert replayed.failures is None
    assert [row["volume"] for row in replayed.rows] == ["0", "0", "1", "1", "7", "7"]
    assert replayed._repr_html_().count("<tr>") == 5


def test_a_volume_that_cannot_be_replayed_is_a_row(traces: list[Path]) -> None:
    with traces[1].open("a") as file:
        file.write("nonsense\n")
    replayed = floatgate.fleet(traces)
    assert replayed.failures is not None and "1 of 3 replays" in replayed.failures
    assert "line 1001" in replayed.rows[2]["error"]


def test_ctrl_c_ends_a_fleet() -> None:
    ended = threading.Event()

    def press() -> None:
        # As a person does: again if nothing happens.
        while not ended.wait(1.0):
            _thread.interrupt_main()

    pressing = threading.Thread(target=press)
    pressing.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        try:
            floatgate.fleet("uniform:space=65536:requests=40000000", ["page", "fast", "bast"])
        finally:
            ended.set()
    assert time.monotonic() - begun < 20
    pressing.join()


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(floatgate.InputError, match="nowhere"):
        floatgate.fleet("nowhere.csv")
    with pytest.raises(floatgate.InputError, match="no key device.dyes"):
        floatgate.fleet("desktop", device={"dyes": 1})
