"""Traces that addresses name are read as files are."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import floatgate
from floatgate import _remote

LINES = "".join(f"{i % 2},W,{(i * 37 % 500) * 4096},4096,{i * 1000}\n" for i in range(3000))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of copies, and a working folder that is not that of the traces."""
    folder = tmp_path / "copies"
    monkeypatch.setenv("FLOATGATE_CACHE", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(LINES)
    return path


@pytest.fixture
def memory() -> Iterator[str]:
    """An address in memory, with the trace."""
    files = fsspec.filesystem("memory")
    files.pipe("/bucket/mine.csv", LINES.encode())
    yield "memory://bucket/mine.csv"
    files.rm("/bucket", recursive=True)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """An address of a server on this machine, whose folder is ``served``."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "mine.csv").write_text(LINES)
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(tmp_path / "served"))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mine.csv"
        server.shutdown()
        thread.join()


def renamed(document: dict[str, Any], name: str) -> dict[str, Any]:
    """A document with another name of the trace."""
    return {**document, "trace": {**document["trace"], "name": name}}


def test_a_run_is_that_of_the_file_and_says_the_address(memory: str, trace: Path, cache: Path) -> None:
    run = floatgate.simulate("fast", trace=memory)
    assert run.document == renamed(floatgate.simulate("fast", trace=trace).document, memory)
    assert str(cache) not in str(run.document)
    assert floatgate.trace_info(memory)["statistics"] == floatgate.trace_info(trace)["statistics"]
    assert floatgate.read_trace([memory, str(trace)]).num_rows == 6000


def test_a_copy_is_made_once_and_anew_when_the_file_changes(memory: str, cache: Path) -> None:
    first = floatgate.read_trace(memory)
    (copy,) = cache.rglob("mine.csv")
    before = copy.stat()
    floatgate.read_trace(memory)
    assert (copy.stat().st_ino, copy.stat().st_mtime) == (before.st_ino, 0)
    fsspec.filesystem("memory").pipe("/bucket/mine.csv", LINES[:-1].rsplit("\n", 1)[0].encode())
    assert floatgate.read_trace(memory).num_rows == first.num_rows - 1
    assert not [path for path in cache.rglob(".*") if path.is_file()], "nothing half-written is left"


def test_sweeps_and_fleets_bring_it_to_where_they_play(memory: str, trace: Path, tmp_path: Path) -> None:
    grid = {"trace": [memory, "desktop"], "host.queue_depth": [1, 8]}
    with ThreadPoolExecutor(2) as threads:
        swept = floatgate.sweep(grid, threads, scheme="fast", device={"dies": 1}, out=tmp_path / "s.csv")
        fleet = floatgate.fleet([memory], ["page", "fast"], executor=threads)
    assert [row["trace.file"] for row in swept.rows] == [memory, memory, "desktop", "desktop"]
    assert not swept.failed
    here = floatgate.fleet(trace, ["page", "fast"])
    assert_frame_equal(pl.DataFrame(fleet.table), pl.DataFrame(here.table))


def test_another_process_reads_it_by_its_own_copy(served: str, trace: Path) -> None:
    given: dict[str, Any] = {"scheme": "fast", "jobs": 2}
    by_address = floatgate.sweep({"host.queue_depth": [1, 8, 32]}, trace=served, **given)
    by_file = floatgate.sweep({"host.queue_depth": [1, 8, 32]}, trace=trace, **given)
    assert not by_address.failed
    assert_frame_equal(pl.DataFrame(by_address.table).drop("trace"), pl.DataFrame(by_file.table).drop("trace"))


def test_elsewhere_the_copy_of_that_machine_counts(memory: str, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    planned = [*_remote.words([memory]), "--scheme", "fast"]
    assert _remote.here(planned) == planned
    # A machine that has no copy yet, and keeps it in another place.
    monkeypatch.setenv("FLOATGATE_CACHE", str(tmp_path / "there"))
    found = _remote.here(planned)
    assert found[2].startswith(str(tmp_path / "there")) and Path(found[2]).read_text() == LINES
    assert found[:2] == planned[:2] and found[3:] == planned[3:]
    # And one where the file is another one by now.
    monkeypatch.setenv("FLOATGATE_CACHE", str(tmp_path / "later"))
    fsspec.filesystem("memory").pipe("/bucket/mine.csv", b"changed")
    with pytest.raises(floatgate.InputError, match="another file now than when the work was planned"):
        _remote.here(planned)


def test_folders_and_patterns_of_a_fleet(memory: str) -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/bucket/other.csv", LINES.encode())
    files.pipe("/bucket/.hidden", b"")
    for named in ("memory://bucket", "memory://bucket/*.csv"):
        rows = floatgate.fleet(named, volumes_by="file").rows
        assert [row["volume"] for row in rows] == ["mine:0", "mine:1", "other:0", "other:1"]
    with pytest.raises(floatgate.InputError, match=r"memory://bucket/\*\.gz: there is no file"):
        floatgate.fleet("memory://bucket/*.gz")


def test_local_and_chained_addresses(memory: str, trace: Path, cache: Path) -> None:
    rows = floatgate.read_trace(trace).num_rows
    assert floatgate.read_trace(trace.as_uri()).num_rows == rows
    assert not cache.exists(), "what is here is read where it is"
    assert floatgate.read_trace(f"simplecache::{memory}").num_rows == rows


def test_a_server(served: str, cache: Path) -> None:
    assert floatgate.trace_info(served)["statistics"]["requests"] == 3000
    assert [row["volume"] for row in floatgate.fleet(served).rows] == ["0", "1"]
    with pytest.raises(floatgate.InputError, match="nowhere.csv: FileNotFoundError"):
        floatgate.trace_info(served.replace("mine", "nowhere"))


def test_what_is_wrong_is_told(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.filesystem("memory").pipe("/bucket/bad.csv", LINES.encode() + b"nonsense\n")
    with pytest.raises(floatgate.InputError, match="memory://bucket/bad.csv.*line 3001"):
        floatgate.read_trace("memory://bucket/bad.csv")
    with pytest.raises(floatgate.InputError, match="nosuch://a.csv: .*nosuch"):
        floatgate.read_trace("nosuch://a.csv")
    with pytest.raises(floatgate.InputError, match="memory://bucket: this is a folder"):
        floatgate.read_trace("memory://bucket")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(floatgate.InputError, match=r"pip install 'floatgate\[remote\]'"):
        floatgate.simulate("fast", trace=memory)
