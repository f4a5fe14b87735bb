"""One run: :func:`simulate` and what comes of it."""

import json
import os
from collections.abc import Mapping
from functools import cached_property
from types import NoneType
from typing import Any

from arro3.core import Table

from . import _crate, _floatgate, _html, _remote
from ._policies import Own, Placement, Selection
from ._progress import Bar, Tell, chosen
from ._scheme import MakesScheme, OwnScheme
from ._settings import Settings, Trace, Value, files, flags, sets, table
from .errors import FloatgateError, InputError


class Run:
    """What a run gave: the record of the command, and tables.

    Tables are Arrow (``arro3.core.Table``): polars, duckdb and pyarrow open them as they are.
    """

    def __init__(self, done: Mapping[str, Any]) -> None:
        self._done = done

    @cached_property
    def document(self) -> dict[str, Any]:
        """All that ``floatgate run --json`` prints (docs/record.md)."""
        document: dict[str, Any] = json.loads(self._done["document"])
        return document

    @property
    def record(self) -> dict[str, Any]:
        """The record: counters, response times, wear, energy, tables, series, with units in the names (docs/record.md)."""
        record: dict[str, Any] = self.document["results"][0]
        return record

    @cached_property
    def summary(self) -> dict[str, float | int | None]:
        """The main figures, as in the rows of a sweep (docs/sweeps.md); ``None`` where there is no value."""
        summary: dict[str, float | int | None] = json.loads(self._done["summary"])
        return summary

    @property
    def counters(self) -> dict[str, Any]:
        """Pages of the host, flash operations by cause, merges by kind; all are counts."""
        counters: dict[str, Any] = self.record["counters"]
        return counters

    @property
    def notes(self) -> list[str]:
        """Remarks that a reader should not miss."""
        notes: list[str] = self.document["notes"]
        return notes

    @property
    def timeseries(self) -> Table:
        """The run over time, a row a sample, at most 512 (docs/series.md)."""
        return self._table("timeseries")

    @property
    def blocks(self) -> Table:
        """One row a block, as the run left it (docs/series.md)."""
        return self._table("blocks")

    @property
    def requests(self) -> Table:
        """One row a request: times in ns, work, merges, waits (docs/requests.md). Of a run with ``requests=True``."""
        return self._table("requests")

    @property
    def timeline(self) -> Table:
        """One row an operation of the flash, from its start to its end in ns (docs/python.md). Of a run with
        ``timeline=True``."""
        return self._table("timeline")

    def _table(self, name: str) -> Table:
        made = self._done[name]
        if made is None:
            raise FloatgateError(f"the run did not keep its {name}: simulate(..., {name}=True)")
        assert isinstance(made, Table)
        return made

    def report(self, path: "str | os.PathLike[str]") -> None:
        """Writes the HTML report of ``floatgate run --report``, without the drawing of the slowest request."""
        _html.write_report("run", self._done["document"], path)

    def __str__(self) -> str:
        """What ``floatgate run`` prints."""
        notes = "".join(f"\nNote: {note}\n" for note in self.notes)
        return f"{self._done['text']}{notes}"

    def __repr__(self) -> str:
        return f"<floatgate.Run: {_html.sentence(self.record, self.document)}>"

    def _repr_html_(self) -> str:
        return _html.of_run(self.record, self.document, self.summary)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a run is not pickled: send its record, summary or tables")


def simulate(
    scheme: "str | MakesScheme | None" = None,
    *,
    trace: Trace | None = None,
    placement: Placement | None = None,
    selection: Selection | None = None,
    device: str | Settings | None = None,
    host: Settings | None = None,
    run: Settings | None = None,
    options: Settings | None = None,
    config: "str | os.PathLike[str] | None" = None,
    columns: str | None = None,
    slowest: int | None = None,
    requests: bool = False,
    timeline: bool = False,
    save_state: "str | os.PathLike[str] | None" = None,
    load_state: "str | os.PathLike[str] | None" = None,
    command: _crate.Program | None = None,
    progress: bool | Tell | None = None,
    **settings: Value,
) -> Run:
    """Plays a trace on one scheme and gives the record, as ``floatgate run`` does, with the same defaults.

    The interpreter is free meanwhile, and Ctrl-C ends the run.

    Args:
        scheme: its name, perhaps with options of its own: ``"fast"``, ``"fast:sw_log=false"``; ``page`` if left out. Or a :class:`Scheme` in Python.
        trace: a file in any format of docs/formats.md, a bundled trace (``"oltp-postgres"``, the default), a generator
            (``"zipf:space=65536:requests=200000"``), a list of them that are merged by time, or a trace in memory with the
            columns of :func:`read_trace`.
        placement: where pages go, in Python (:class:`Placement`); with the scheme ``page``.
        selection: what is collected, in Python (:class:`Selection`); with the scheme ``page``.
        device: the name of a flash part, or settings of the section ``device``; what is left out follows from the trace.
        host: settings of the section ``host``.
        run: settings of the section ``run``: ``{"ageing": ["fill", "settle"]}``.
        options: options of the scheme.
        config: a TOML file of settings; what is given here wins.
        columns: what the columns of a CSV or Parquet file hold (docs/formats.md).
        slowest: tells of so many of the slowest requests what they waited for, in ``record["explained"]``.
        requests: keeps :attr:`Run.requests`, some 180 bytes a request.
        timeline: keeps :attr:`Run.timeline`.
        save_state: the file that the device is saved to once it is aged (docs/states.md).
        load_state: the file of a saved device to begin with.
        command: a command that knows a scheme of your own, or the folder of its crate (docs/python.md): it plays, and shows no
            progress.
        progress: whether to show a bar, or a function to tell; by default a bar in terminals and notebooks.
        **settings: further keys in full: ``**{"host.queue_depth": 8}``.

    Raises:
        InputError: something is wrong with settings, trace or files.
        BugError: the scheme has broken a law.
        PolicyError: a policy in Python raised something, or returned what cannot be.

    >>> import floatgate
    >>> load = "skew:space=4096:distinct=2000:writes=6000"
    >>> fast, page = (floatgate.simulate(scheme, trace=load, device={"dies": 1}) for scheme in ("fast", "page"))
    >>> fast.summary["write_amplification"] > page.summary["write_amplification"]
    True
    """
    if command is not None and (placement or selection or not isinstance(scheme, (str, NoneType))):
        raise InputError("command= plays in a process of its own, where there is no Python: leave out what is written in Python")
    own: Own | OwnScheme = Own(placement, selection)
    if not isinstance(scheme, (str, NoneType)):
        if own.placement or own.selection:
            raise InputError("placement= and selection= go with the scheme page, not with one in Python")
        own, scheme = OwnScheme(scheme), "python"
    named = files(trace)
    if isinstance(device, str):
        device = {"part": device}
    sections = {"device": device, "host": host, "run": run, "scheme": options, "": settings}
    given = {
        "--scheme": scheme,
        "--config": config,
        "--columns": columns,
        "--slowest": slowest,
        "--save-state": save_state,
        "--load-state": load_state,
    }
    words = [*_remote.words(named or []), *flags(given), *sets(sections)]
    for name in named or []:
        words += ["--trace", name]
    frame = table(trace) if named is None else None  # type: ignore[arg-type]
    if command is not None:
        return Run(_crate.simulate(command, words, frame, requests, timeline))
    tell = chosen(progress)
    try:
        return Run(_floatgate.simulate(words, frame, (requests, timeline), tell, own))
    finally:
        if isinstance(tell, Bar):
            tell.close()
