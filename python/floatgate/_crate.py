"""Runs and sweeps by a command of one's own: a crate that gives Floatgate's command a scheme more (examples/my-ftl)."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any, TypeAlias, Union

from arro3.core import Array, DataType, Field, Schema, Table
from arro3.core.types import ArrowStreamExportable

from . import _floatgate, _remote
from .errors import BugError, FloatgateError, InputError

Program: TypeAlias = Union[str, "os.PathLike[str]"]
"""The program, or the folder of its crate, which is built first."""

EXIT_INPUT, EXIT_BUG = 2, 3

PATIENCE_S = 3.0
"""Time that a program has to end by itself."""


def found(command: Program) -> str:
    """The path of a program; of a crate it is built."""
    path = Path(command)
    if (path / "Cargo.toml").is_file():
        return built(path)
    program = shutil.which(os.fspath(command))
    if program is None:
        raise InputError(
            f"{os.fspath(command)}: there is no such program\n  help: name the command that your crate builds, as "
            "target/release/my-ftl, or the folder of the crate, with its Cargo.toml"
        )
    # Where a call runs in another folder, the same program is meant.
    return os.path.abspath(program)


def built(crate: Path) -> str:
    """The program of a crate, built in the release profile."""
    words = ["cargo", "build", "--release", "--message-format=json-render-diagnostics", "--manifest-path"]
    try:
        # What the compiler has to say goes to the terminal.
        done = subprocess.run([*words, crate / "Cargo.toml"], stdout=subprocess.PIPE, text=True, check=False)
    except FileNotFoundError:
        raise InputError(f"{crate}: a crate is built by cargo, which is not here\n  help: https://rustup.rs") from None
    if done.returncode != 0:
        raise InputError(f"{crate}: the crate does not build; cargo has said why")
    own = (crate / "Cargo.toml").resolve()
    programs = [program for line in done.stdout.splitlines() if (program := program_of(json.loads(line), own)) is not None]
    if len(programs) != 1:
        raise InputError(f"{crate}: a crate with one program is needed, this one has {len(programs)}")
    return programs[0]


def program_of(message: dict[str, Any], manifest: Path) -> str | None:
    """The program that a message of cargo tells of, if it is one of the crate."""
    if message["reason"] != "compiler-artifact" or Path(message["manifest_path"]).resolve() != manifest:
        return None
    program: str | None = message["executable"]
    return program


def printed(program: str, words: list[str]) -> str:
    """What the program prints; raises what is wrong, as this module does."""
    process = subprocess.Popen([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate()
    except BaseException:
        ended(process)
        raise
    # A sweep with a bug in a cell has rows all the same.
    if process.returncode == 0 or (process.returncode == EXIT_BUG and out):
        return out
    _, mark, told = f"\n{err}".rpartition("\nerror: ")
    told = told.strip()
    if process.returncode == EXIT_INPUT and mark:
        raise InputError(told)
    if process.returncode == EXIT_BUG:
        raise BugError(told)
    raise FloatgateError(f"{program} ended with exit code {process.returncode}: {told or err.strip()}")


def ended(process: "subprocess.Popen[str]") -> None:
    """Ends a program as Ctrl-C does, if need be with force."""
    if os.name == "posix":
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=PATIENCE_S)
            return
        except subprocess.TimeoutExpired:
            pass
    process.kill()
    process.communicate()


def simulate(
    command: Program, words: list[str], trace: ArrowStreamExportable | None, requests: bool, timeline: bool
) -> dict[str, Any]:
    """A run by another command: what the native module gives of one."""
    program = found(command)
    with tempfile.TemporaryDirectory(prefix="floatgate-") as folder:
        files = {"blocks": "--blocks-out"} | ({"requests": "--requests-out"} if requests else {})
        outs = [word for kind, flag in files.items() for word in (flag, os.path.join(folder, f"{kind}.csv"))]
        drawn = os.path.join(folder, "timeline.json")
        if timeline:
            outs += ["--timeline", drawn]
        copies: list[str] = []
        if trace is not None:
            copy = os.path.join(folder, "trace.parquet")
            _floatgate.write_trace(trace, copy)
            copies = [_remote.COPY, _floatgate.FRAME, copy]
            outs += ["--trace", _floatgate.FRAME]
        document = printed(program, ["run", "--json", *copies, *words, *outs])
        try:
            told = _floatgate.recorded(document)
        except BugError as error:
            raise InputError(f"{program} was built with another version of Floatgate than this module: {error}") from error
        done: dict[str, Any] = {**told, "document": document, "requests": None, "timeline": None}
        for kind in files:
            done[kind] = _floatgate.read_rows(kind, os.path.join(folder, f"{kind}.csv"))
        if timeline:
            done["timeline"] = operations(drawn, json.loads(document)["results"][0]["device"]["dies"])
    return done


PCM = 1_000_001
"""The process of a timeline that the phase-change memory is."""


def operations(path: str, dies: int) -> Table:
    """The table of a timeline."""
    with open(path, encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    starts = [round(event["ts"] * 1000) for event in events]
    ends = [start + round(event["dur"] * 1000) for start, event in zip(starts, events, strict=True)]
    requests = (event["args"]["request"] for event in events)
    columns: list[tuple[str, DataType, list[Any]]] = [
        ("die", DataType.uint32(), [event["tid"] + (max(dies, 1) if event["pid"] == PCM else 0) for event in events]),
        ("does", DataType.utf8(), [event["name"].split(" ", 1)[1] for event in events]),
        ("cause", DataType.utf8(), [event["cat"] for event in events]),
        ("pages", DataType.uint32(), [event["args"].get("pages", 1) for event in events]),
        ("request", DataType.uint64(), [request if isinstance(request, int) else None for request in requests]),
        ("start_ns", DataType.uint64(), starts),
        ("end_ns", DataType.uint64(), ends),
    ]
    fields = [Field(name, kind, nullable=name == "request") for name, kind, _ in columns]
    return Table.from_arrays([Array(values, kind) for _, kind, values in columns], schema=Schema(fields))


def sweep(command: Program, words: list[str], records: bool) -> str:
    """A sweep by another command: its document."""
    document = printed(found(command), ["sweep", "--json", *words])
    if records:
        return document
    whole = json.loads(document)
    for cell in whole["cells"]:
        if cell["figures"] is not None:
            cell.pop("result", None)
    return json.dumps(whole)
