"""A sweep by Python has the cells and rows of the command, whoever plays them and whatever happens meanwhile."""

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import floatgate

from .conftest import Command
from .executors import Counting, by_dask

LOAD = "skew:space=4096:distinct=2000:writes=3000"
GRID: dict[str, Any] = {"device.log_percent": [5, 10, 20], "host.queue_depth": "1,8"}


@pytest.fixture
def by_command(command: Command, tmp_path: Path) -> pl.DataFrame:
    words = ["--vary", "device.log_percent=5,10,20", "--vary", "host.queue_depth=1,8", "--trace", LOAD]
    ran = command("sweep", *words, "--scheme", "fast,page", "--out", "c.parquet", "--report", "c.html")
    assert ran.returncode == 0, ran.stderr
    return pl.read_parquet(tmp_path / "c.parquet")


def test_the_same_rows_as_by_the_command(by_command: pl.DataFrame, tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    swept = floatgate.sweep({**GRID, "scheme": ["fast", "page"]}, trace=LOAD, out=out, jobs=2)
    assert_frame_equal(pl.DataFrame(swept.table), by_command)
    assert out.read_bytes() == (tmp_path / "c.parquet").read_bytes()
    assert not out.with_name("p.parquet.partial.jsonl").exists()
    assert len(swept) == 12
    swept.report(tmp_path / "p.html")
    assert (tmp_path / "p.html").read_bytes() == (tmp_path / "c.html").read_bytes()
    floatgate.sweep({**GRID, "scheme": ["fast", "page"]}, trace=LOAD, jobs=1, records=True).report(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_bytes() == (tmp_path / "c.html").read_bytes()
    assert "write amplification" in swept._repr_html_()


def test_any_executor_gives_the_same(by_command: pl.DataFrame) -> None:
    with ThreadPoolExecutor(2) as threads:
        swept = floatgate.sweep(GRID, threads, scheme=["fast", "page"], trace=LOAD)
    assert_frame_equal(pl.DataFrame(swept.table), by_command)


def test_configurations_one_by_one() -> None:
    grid = [
        {"scheme": "fast", "device.dies": 1, "host.queue_depth": 8},
        {"scheme": "page", "device.dies": 2, "host.queue_depth": 8},
        {"scheme": "fast", "device.dies": 2, "host.queue_depth": 1},
    ]
    rows = floatgate.sweep(grid, trace=LOAD, jobs=1).rows
    assert [{key: row[key] for key in grid[0]} for row in rows] == grid
    assert all(row["outcome"] == "ran" for row in rows)
    with pytest.raises(floatgate.InputError, match="same keys: device.dies"):
        floatgate.sweep([{"host.queue_depth": 1}, {"host.queue_depth": 2, "device.dies": 1}])


def test_a_refused_cell_is_a_row() -> None:
    swept = floatgate.sweep({"scheme.log_blocks": [8, 10**6]}, scheme="fast", trace=LOAD, device={"dies": 1, "blocks_per_die": 200}, jobs=1)
    assert [row["outcome"] for row in swept.rows] == ["ran", "refused"]
    assert swept.failed[0]["scheme.log_blocks"] == 10**6
    assert swept.failed[0]["reason"]


def test_a_stopped_sweep_goes_on(by_command: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floatgate._executors.IN_FLIGHT", 1)
    out = tmp_path / "p.parquet"
    journal = tmp_path / "p.parquet.partial.jsonl"
    given: dict[str, Any] = {"scheme": ["fast", "page"], "trace": LOAD, "out": out}
    whole = Counting(100)
    floatgate.sweep(GRID, whole, **given)
    out.unlink()
    with pytest.raises(KeyboardInterrupt):
        floatgate.sweep(GRID, Counting(5), **given)
    assert not out.exists()
    # What a kill tears.
    with journal.open("a") as file:
        file.write('{"cell": "half')
    rest = Counting(100)
    floatgate.sweep(GRID, rest, **given)
    assert_frame_equal(pl.read_parquet(out), by_command)
    assert rest.begun == whole.begun - 5 > 0
    assert not journal.exists()


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    journal = tmp_path / "p.csv.partial.jsonl"
    journal.write_text("mine\n")
    with pytest.raises(floatgate.InputError, match="no journal"):
        floatgate.sweep(GRID, scheme="fast", trace=LOAD, out=tmp_path / "p.csv")
    assert journal.read_text() == "mine\n"


KILLER = """
    import os, signal, sys
    import floatgate
    from floatgate import _floatgate, _sweep

    def play(errand):
        # A cell that takes its process with it.
        if '"case":1,' in errand:
            os.kill(os.getpid(), signal.SIGKILL)
        return _floatgate.sweep_cell(errand)

    if __name__ == "__main__":
        _sweep.play = play
        swept = floatgate.sweep({"host.queue_depth": "1..6"}, scheme="fast", trace=sys.argv[1], jobs=2)
        print(*(row["outcome"] for row in swept.rows), swept.failed[0]["reason"])
"""


def test_a_cell_that_kills_its_process_is_a_row(tmp_path: Path) -> None:
    script = tmp_path / "sweep.py"
    script.write_text(textwrap.dedent(KILLER))
    ran = subprocess.run([sys.executable, str(script), LOAD], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.startswith("ran failed ran ran ran ran the process that played it was killed"), ran.stderr


def test_a_script_without_a_guard_is_told_what_it_needs(tmp_path: Path) -> None:
    script = tmp_path / "sweep.py"
    script.write_text("import floatgate\nfloatgate.sweep({'host.queue_depth': [1, 2]}, scheme='fast', jobs=2)\n")
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 1
    assert "help: a script needs `if __name__" in ran.stderr.splitlines()[-1]


def test_what_concerns_all_cells_is_told_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(floatgate.InputError, match="no key device.dyes"):
        floatgate.sweep({"device.dyes": [1, 2]}, trace=LOAD)
    with pytest.raises(floatgate.InputError, match="does not tell the format"):
        floatgate.sweep(GRID, trace=LOAD, out=tmp_path / "p.txt")
    assert list(tmp_path.iterdir()) == []


BY_DASK = """swept = floatgate.sweep({"host.queue_depth": "1..200"}, client, scheme="fast", trace=sys.argv[1], progress=tell)
            swept.write(sys.argv[2])
            print(len(swept), len(swept.failed))"""


def test_dask_with_a_worker_killed_in_the_middle(tmp_path: Path) -> None:
    assert by_dask(tmp_path, BY_DASK, LOAD, str(tmp_path / "d.parquet")) == ["200", "0", "1", "False"]
    here = floatgate.sweep({"host.queue_depth": "1..200"}, scheme="fast", trace=LOAD)
    assert_frame_equal(pl.read_parquet(tmp_path / "d.parquet"), pl.DataFrame(here.table))
