"""Runs and sweeps by another command give what this module gives."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import floatgate

from .conftest import LOAD

ROOT = Path(__file__).parents[2]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The command of this installation, as a program of somebody's own."""
    path = tmp_path / "own"
    path.write_text(f"#!{sys.executable}\nimport sys\nfrom floatgate._command import main\nsys.exit(main())\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def ring() -> Path:
    """The command of examples/my-ftl; the gate has built it before these tests run."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = [path for path in (target / profile / "my-ftl" for profile in ("release", "debug")) if path.exists()]
    if not found:
        pytest.skip("cargo build -p my-ftl makes the command that this tests")
    return max(found, key=lambda path: path.stat().st_mtime)


def test_a_run_is_the_same_to_the_last_digit(own: Path) -> None:
    given: dict[str, Any] = {"trace": LOAD, "device": {"dies": 2}, "requests": True, "timeline": True, "slowest": 3}
    here = floatgate.simulate("fast", **given)
    there = floatgate.simulate("fast", command=own, **given)
    assert there.document == here.document
    assert there.summary == here.summary
    assert str(there) == str(here)
    for name in ("timeseries", "blocks", "requests", "timeline"):
        assert_frame_equal(pl.DataFrame(getattr(there, name)), pl.DataFrame(getattr(here, name)))
        assert getattr(there, name).schema == getattr(here, name).schema
    with pytest.raises(floatgate.FloatgateError, match="did not keep its requests"):
        assert floatgate.simulate("fast", trace=LOAD, command=own).requests


def test_a_trace_in_memory(own: Path) -> None:
    trace = pl.DataFrame(floatgate.read_trace(LOAD)).head(3000)
    here, there = (floatgate.simulate("page", trace=trace, command=by) for by in (None, own))
    assert there.record == here.record
    assert there.document["trace"]["name"] == here.document["trace"]["name"] == "<frame>"


def test_a_sweep_is_the_same(own: Path, tmp_path: Path) -> None:
    grid = {"device.log_percent": [5, 10], "scheme": ["fast", "page"]}
    here = floatgate.sweep(grid, trace=LOAD, jobs=1)
    there = floatgate.sweep(grid, trace=LOAD, command=own, out=tmp_path / "s.csv")
    assert_frame_equal(pl.DataFrame(there.table), pl.DataFrame(here.table))
    assert there.document == here.document
    assert floatgate.sweep(grid, trace=LOAD, command=own, records=True).document["cells"][0]["result"]["counters"]
    here.write(tmp_path / "h.csv")
    assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "h.csv").read_bytes()
    with pytest.raises(floatgate.InputError, match="leave the executor out"):
        floatgate.sweep([{"scheme": "fast", "device.dies": 1}], trace=LOAD, command=own)


def test_a_crate_is_built_first(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crate = tmp_path / "crate"
    crate.mkdir()
    (crate / "Cargo.toml").write_text("[package]\n")
    # What cargo says of a dependency, a library and a program.
    told = [
        {"reason": "compiler-artifact", "manifest_path": "/other/Cargo.toml", "executable": "/other/program"},
        {"reason": "compiler-artifact", "manifest_path": str(crate / "Cargo.toml"), "executable": None},
        {"reason": "compiler-artifact", "manifest_path": str(crate / "Cargo.toml"), "executable": str(own)},
        {"reason": "build-finished", "success": True},
    ]
    cargo = tmp_path / "cargo"
    cargo.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(json.dumps(message) for message in told) + "\nEND\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert floatgate.simulate("fast", trace=LOAD, command=crate).record == floatgate.simulate("fast", trace=LOAD).record
    told.pop(2)
    cargo.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(json.dumps(message) for message in told) + "\nEND\n")
    with pytest.raises(floatgate.InputError, match="one program is needed, this one has 0"):
        floatgate.simulate("fast", trace=LOAD, command=crate)


def test_what_is_wrong_is_told_as_by_this_module(own: Path, tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [{"scheme": "fats"}, {"trace": "nowhere.csv"}, {"device": {"dyes": 1}}, {"save_state": "/no/folder/x"}]
    for given in wrong:
        told = []
        for by in (None, own):
            with pytest.raises(floatgate.InputError) as raised:
                floatgate.simulate(**given, command=by)
            told.append(str(raised.value))
        assert told[0] == told[1]
    with pytest.raises(floatgate.InputError, match="there is no such program"):
        floatgate.simulate("ring", command="target/release/nothing")
    with pytest.raises(floatgate.FloatgateError, match="ended with exit code 1"):
        floatgate.simulate("ring", command=shutil.which("false"))
    (tmp_path / "Cargo.toml").write_text("[package]\n")
    with pytest.raises(floatgate.InputError, match="the crate does not build"):
        floatgate.simulate("ring", command=tmp_path)


def test_ctrl_c_ends_the_program(own: Path) -> None:
    pressing = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    pressing.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        floatgate.simulate("fast", trace="uniform:space=65536:requests=40000000", command=own)
    assert time.monotonic() - begun < 15
    pressing.join()
    alive = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(own).encode() in path.read_bytes()]
    assert not alive


def test_tables_of_another_version_are_told(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = own.read_text().replace(
        "sys.exit(main())",
        "code = main()\nblocks = sys.argv[sys.argv.index('--blocks-out') + 1]\n"
        "open(blocks, 'w').write('die,block\\n')\nsys.exit(code)",
    )
    own.write_text(text)
    with pytest.raises(floatgate.InputError, match="not those of this version"):
        floatgate.simulate("fast", trace=LOAD, command=own)


def test_a_scheme_that_only_the_crate_has(ring: Path) -> None:
    with pytest.raises(floatgate.InputError, match="ring"):
        floatgate.simulate("ring", trace=LOAD)
    run = floatgate.simulate("ring", trace=LOAD, options={"extra_erased_blocks": 3}, command=ring, requests=True)
    words = [str(ring), "run", "--scheme", "ring", "--trace", LOAD, "--set", "scheme.extra_erased_blocks=3", "--json"]
    printed = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    assert run.record["counters"] == printed["results"][0]["counters"]
    assert run.record["options"]["extra_erased_blocks"] == "3"
    assert run.requests.num_rows == run.record["time"]["response"]["all"]["count"]
    swept = floatgate.sweep({"scheme.extra_erased_blocks": [1, 3]}, scheme="ring", trace=LOAD, command=ring)
    assert [row["outcome"] for row in swept.rows] == ["ran", "ran"]
    assert swept.rows[1]["erases"] == run.summary["erases"]
