"""A fleet by Python has the rows of the command."""

import _thread
import json
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import floatgate

from .conftest import Command
from .executors import Counting, by_dask


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    """Three volumes in two files; one ends beyond its device."""
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    lines = [f"{i % 2},W,{(i * 37 % 500) * 4096},4096,{i * 1000}" for i in range(3000)]
    first.write_text("\n".join(lines) + "\n")
    second.write_text("".join(f"7,W,{i % 50 * 4096},8192,{i * 500}\n" for i in range(1000)))
    return [first, second]


def test_the_same_rows_as_by_the_command(command: Command, tmp_path: Path, traces: list[Path]) -> None:
    words = ["fleet", *map(str, traces), "--scheme", "page,fast", "--json", "--out", "f.parquet", "--report", "f.html"]
    printed = command(*words)
    assert printed.returncode == 0, printed.stderr
    replayed = floatgate.fleet(traces, ["page", "fast"])
    assert_frame_equal(pl.DataFrame(replayed.table), pl.read_parquet(tmp_path / "f.parquet"))
    assert replayed.document == json.loads(printed.stdout)
    assert replayed.failures is None
    assert [row["volume"] for row in replayed.rows] == ["0", "0", "1", "1", "7", "7"]
    assert replayed._repr_html_().count("<tr>") == 5
    replayed.report(tmp_path / "p.html")
    assert (tmp_path / "p.html").read_bytes() == (tmp_path / "f.html").read_bytes()


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


def same(replayed: floatgate.Fleet, here: floatgate.Fleet) -> None:
    """Both have the same rows, figures and failures."""
    assert_frame_equal(pl.DataFrame(replayed.table), pl.DataFrame(here.table))
    assert replayed.document == here.document
    assert replayed.failures == here.failures


def test_any_executor_gives_the_same(traces: list[Path]) -> None:
    with traces[1].open("a") as file:
        file.write("nonsense\n")
    schemes = ["page", "fast:log_blocks=4", "fast:log_blocks=1000000"]
    here = floatgate.fleet(traces, schemes)
    assert here.failures is not None and "5 of 9 replays" in here.failures
    with ThreadPoolExecutor(2) as threads:
        same(floatgate.fleet(traces, schemes, executor=threads), here)


def test_a_folder_and_names_that_count_from_here(traces: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(traces[0].parent)
    Path("t").mkdir()
    for trace in traces:
        trace.rename(Path("t") / trace.name)
    here = floatgate.fleet("t")
    with ThreadPoolExecutor(1) as threads:
        same(floatgate.fleet("t", executor=threads), here)


def test_processes_of_this_machine_write_the_rows(command: Command, tmp_path: Path, traces: list[Path]) -> None:
    told: list[tuple[int, int]] = []
    out = tmp_path / "p.parquet"
    replayed = floatgate.fleet(traces, ["page", "fast"], out=out, jobs=2, progress=lambda _, done, total: told.append((done, total)))
    assert command("fleet", *map(str, traces), "--scheme", "page,fast", "--out", "c.parquet").returncode == 0
    assert out.read_bytes() == (tmp_path / "c.parquet").read_bytes()
    assert told == [(1, 3), (2, 3), (3, 3)]
    same(replayed, floatgate.fleet(traces, ["page", "fast"]))
    assert not out.with_name("p.parquet.partial.jsonl").exists()


def test_a_stopped_fleet_goes_on(traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floatgate._executors.IN_FLIGHT", 1)
    out = tmp_path / "p.csv"
    journal = tmp_path / "p.csv.partial.jsonl"
    with pytest.raises(KeyboardInterrupt):
        floatgate.fleet(traces, executor=Counting(2), out=out)
    assert journal.exists() and not out.exists()
    with pytest.raises(floatgate.InputError, match="no journal of a sweep"):
        floatgate.sweep({"host.queue_depth": [1]}, scheme="fast", trace="desktop", out=out)
    rest = Counting(100)
    same(floatgate.fleet(traces, executor=rest, out=out), floatgate.fleet(traces))
    assert rest.begun == 1
    assert out.exists() and not journal.exists()
    # Of a trace that has changed nothing is taken again.
    with pytest.raises(KeyboardInterrupt):
        floatgate.fleet(traces, executor=Counting(2), out=out)
    with traces[1].open("a") as file:
        file.write("7,W,0,4096,900000\n")
    again = Counting(100)
    floatgate.fleet(traces, executor=again, out=out)
    assert again.begun == 3


def test_a_trace_that_changes_meanwhile_is_told(traces: list[Path]) -> None:
    class Late(Counting):
        def submit(self, fn: object, /, *args: object, **kwargs: object) -> "Future[object]":
            if self.begun == 0:
                traces[0].write_text(traces[0].read_text().replace("1,W", "9,W"))
            return super().submit(fn, *args, **kwargs)

    rows = floatgate.fleet(traces, executor=Late(100)).rows
    assert ["other runs here" in str(row["error"]) for row in rows] == [False, True, False]


KILLER = """
    import os, signal, sys
    import floatgate
    from floatgate import _fleet, _floatgate

    def play(errand):
        # A volume that takes its process with it.
        if '"volume":1,' in errand:
            os.kill(os.getpid(), signal.SIGKILL)
        return _floatgate.fleet_volume(errand)

    if __name__ == "__main__":
        _fleet.play = play
        replayed = floatgate.fleet(sys.argv[1:], ["page", "fast"], out="rows.csv", jobs=2)
        print(*(row["error"] is None for row in replayed.rows), replayed.rows[2]["error"])
"""


def test_a_volume_that_kills_its_process_is_a_row(traces: list[Path], tmp_path: Path) -> None:
    script = tmp_path / "fleet.py"
    script.write_text(textwrap.dedent(KILLER))
    words = [sys.executable, str(script), *map(str, traces)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert ran.stdout.startswith("True True False False True True the process that played it was killed"), ran.stderr


BY_DASK = "print(floatgate.fleet(sys.argv[1], executor=client, out=sys.argv[2], progress=tell).failures)"


def test_dask_with_a_worker_killed_in_the_middle(tmp_path: Path) -> None:
    trace = tmp_path / "many.csv"
    lines = [f"{i * 7 % 60},W,{(i * 37 % 500) * 4096},4096,{i * 1000}" for i in range(30_000)]
    trace.write_text("\n".join(lines) + "\n")
    assert by_dask(tmp_path, BY_DASK, str(trace), str(tmp_path / "d.parquet")) == ["None", "1", "False"]
    assert_frame_equal(pl.read_parquet(tmp_path / "d.parquet"), pl.DataFrame(floatgate.fleet(trace).table))
