"""Schemes over all combinations of varied settings, on whatever plays cells: :func:`sweep`."""

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias, Union

from arro3.core import Table

from . import _crate, _executors, _floatgate, _html, _remote, _work
from ._progress import Tell
from ._settings import Settings, Value, flags, sets, text
from .errors import InputError

Values: TypeAlias = Union[Sequence[Value], str]
"""The values of a key: a list, or ranges as on the command line: ``"3..20"``, ``"64..1024*2"``."""

Grid: TypeAlias = Mapping[str, Values] | Sequence[Mapping[str, Value]]
"""The values of each key, of which every combination is run; or the configurations one by one."""

SCHEME = "scheme"


class Sweep:
    """What a sweep gave: a row a cell."""

    def __init__(self, document: str) -> None:
        self._document = document

    @cached_property
    def document(self) -> dict[str, Any]:
        """All that ``floatgate sweep --json`` prints (docs/record.md); records only with ``records=True``."""
        document: dict[str, Any] = json.loads(self._document)
        return document

    @cached_property
    def table(self) -> Table:
        """A row a cell, in the columns of docs/sweeps.md."""
        return _floatgate.sweep_table(self._document)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The same as dictionaries."""
        return _html.dictionaries(self.table)

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The rows of cells that gave no record; ``reason`` says why."""
        return [row for row in self.rows if row["outcome"] != "ran"]

    @property
    def notes(self) -> list[str]:
        """Remarks that a reader should not miss."""
        notes: list[str] = self.document["notes"]
        return notes

    def write(self, path: "str | os.PathLike[str]") -> None:
        """Writes the rows: Parquet or CSV by the ending of the name; with ``.json`` the document."""
        _floatgate.sweep_write(self._document, path)

    def report(self, path: "str | os.PathLike[str]") -> None:
        """Writes the HTML report of ``floatgate sweep --report`` (docs/sweeps.md)."""
        _html.write_report("sweep", self._document, path)

    def __len__(self) -> int:
        return self.table.num_rows

    def __str__(self) -> str:
        """What ``floatgate sweep`` prints."""
        return _floatgate.sweep_printed(self._document)

    def __repr__(self) -> str:
        return f"<floatgate.Sweep: {len(self)} cells, {len(self.failed)} of them without a record>"

    def _repr_html_(self) -> str:
        return _html.of_sweep(self.document, self.rows)


def sweep(
    grid: Grid,
    executor: _executors.Where = None,
    *,
    scheme: str | Sequence[str] | None = None,
    trace: "str | os.PathLike[str] | None" = None,
    device: str | Settings | None = None,
    host: Settings | None = None,
    run: Settings | None = None,
    options: Settings | None = None,
    config: "str | os.PathLike[str] | None" = None,
    columns: str | None = None,
    out: "str | os.PathLike[str] | None" = None,
    fresh: bool = False,
    records: bool = False,
    jobs: int | None = None,
    command: _crate.Program | None = None,
    progress: bool | Tell | None = None,
    **settings: Value,
) -> Sweep:
    """Runs every combination of the varied values under every scheme, as ``floatgate sweep`` does; cells and rows are the same.

    A cell that is refused, fails or is lost with its process is a row with the reason, and ends nothing.

    Args:
        grid: the values of each key, ``{"device.log_percent": "3..20", "scheme": ["fast", "last++"]}``; or configurations
            one by one, all with the same keys. ``trace`` varies the trace.
        executor: any executor of ``concurrent.futures``, or a client of Dask; processes of this machine if left out.
            Traces and configuration files must be where the cells are played, under the same names.
        scheme: schemes, if the grid has none; all if left out.
        trace: the trace, if the grid has none; a file, a bundled trace or a generator.
        device: as of :func:`simulate`, and so are ``host``, ``run``, ``options``, ``config``, ``columns`` and ``settings``.
        out: the file of the rows (``.parquet``, ``.csv``; ``.json``: the document). What is done is kept in
            ``OUT.partial.jsonl`` meanwhile: the same call goes on where it was stopped.
        fresh: begins anew, whatever a sweep that was stopped has left.
        records: keeps the record of every cell in ``document``.
        jobs: processes at a time, without an executor; one a processor if left out. 1: all in this process.
        command: a command that knows a scheme of your own, or the folder of its crate: it plays the cells, on all processors of
            this machine, without an executor.
        progress: whether to show a bar, or a function to tell, in cells.

    Raises:
        InputError: something is wrong that concerns all cells: nothing has run.

    >>> rows = sweep({"device.log_percent": [5, 10]}, scheme="fast", trace="skew:writes=2000", jobs=1).rows
    >>> [(row["device.log_percent"], row["outcome"]) for row in rows]
    [(5, 'ran'), (10, 'ran')]
    """
    if isinstance(device, str):
        device = {"part": device}
    sections = {"device": device, "host": host, "run": run, "scheme": options, "": settings}
    names = [scheme] if isinstance(scheme, str) else list(scheme or [])
    varied, picked = words_of(grid, names)
    given = {"--config": config, "--columns": columns, "--trace": trace}
    copies = _remote.words(traces_of(grid, trace))
    words = [*copies, *flags(given), *sets(sections), *varied]
    if command is not None:
        if executor is not None or picked is not None:
            raise InputError("a command plays its cells itself: leave the executor out, and name its schemes by scheme=")
        kept = flags({"--out": out, "--jobs": jobs})
        return Sweep(_crate.sweep(command, [*words, *kept, *(["--fresh"] if fresh else [])], records))
    plan = _floatgate.SweepPlan(words)
    cells = plan.cells(_work.program(), records)
    wanted = [picked is None or picked[case] == label for _, label, case, _, _ in cells]
    chosen = [cell for cell, want in zip(cells, wanted, strict=True) if want]
    # Cells of one key are one run.
    came: dict[str, _executors.Came] = {key: (refused, "") for key, _, _, _, refused in chosen if refused is not None}
    errands = {key: errand for key, _, _, errand, _ in chosen if errand is not None}
    with _work.work("sweep", play, keepable, out, (".parquet", ".csv", ".json"), fresh, progress, "cells") as work:
        came |= work.done(errands, executor, jobs, already=len(came))
        swept = Sweep(plan.document([came[cell[0]] if want else None for cell, want in zip(cells, wanted, strict=True)]))
        if out is not None:
            swept.write(out)
    return swept


def traces_of(grid: Grid, trace: "str | os.PathLike[str] | None") -> list[str]:
    """The traces that a sweep names.

    >>> traces_of({"trace": ["a.csv", "b.csv"]}, None), traces_of([{"trace.file": "a.csv"}], "c.csv")
    (['a.csv', 'b.csv'], ['a.csv', 'c.csv'])
    """
    configurations: Sequence[Mapping[str, Any]] = [grid] if isinstance(grid, Mapping) else grid
    named = (given[key] for given in configurations for key in ("trace", "trace.file") if key in given)
    listed = (one for names in named for one in ([names] if isinstance(names, (str, os.PathLike)) else names))
    return [os.fspath(name) for name in (*listed, *([trace] if trace is not None else []))]


def keepable(came: dict[str, Any]) -> bool:
    """Whether it would be the same tomorrow: a bug may be gone then, and memory be free."""
    result = came["result"] or {}
    return "refused" not in result and "bug" not in result


def play(errand: str) -> str:
    """Plays a cell: what executors are given to do."""
    return _floatgate.sweep_cell(_work.here(errand))


def words_of(grid: Grid, schemes: list[str]) -> tuple[list[str], list[str] | None]:
    """The words that say what is varied; and, of configurations with a scheme each, the schemes."""
    if isinstance(grid, Mapping):
        product = dict(grid)
        if SCHEME in product:
            named = product.pop(SCHEME)
            schemes = [named] if isinstance(named, str) else [str(name) for name in named]
        return [*scheme_words(schemes), *(w for key in product for w in ("--vary", vary(key, product[key])))], None
    return of_configurations(grid, schemes)


def of_configurations(grid: Sequence[Mapping[str, Value]], schemes: list[str]) -> tuple[list[str], list[str] | None]:
    """The same of configurations one by one.

    >>> of_configurations([{"scheme": "fast", "device.dies": 1}, {"scheme": "page", "device.dies": 2}], [])
    (['--zip', '--scheme', 'fast,page', '--vary', 'device.dies=1,2'], ['fast', 'page'])
    """
    if not grid:
        raise InputError("a sweep without a configuration")
    keys = list(grid[0])
    for number, configuration in enumerate(grid):
        if set(configuration) != set(keys):
            differing = ", ".join(sorted(set(configuration) ^ set(keys)))
            raise InputError(f"configuration {number} of the sweep and the first one do not have the same keys: {differing}")
    picked = [str(configuration[SCHEME]) for configuration in grid] if SCHEME in keys else None
    words = ["--zip", *scheme_words(sorted(set(picked)) if picked else schemes)]
    for key in keys:
        if key != SCHEME:
            words += ["--vary", vary(key, [configuration[key] for configuration in grid])]
    return words, picked


def scheme_words(schemes: list[str]) -> list[str]:
    """The words that name schemes."""
    return ["--scheme", ",".join(schemes)] if schemes else []


def vary(key: str, values: Values) -> str:
    """What stands behind ``--vary``.

    >>> vary("device.log_percent", "3..20"), vary("host.beyond", ["wrap"]), vary("run.ageing", [["fill"]])
    ('device.log_percent=3..20', 'host.beyond="wrap"', 'run.ageing=["fill"]')
    """
    if isinstance(values, str):
        return f"{key}={values}"
    listed = (json.dumps(os.fspath(v)) if isinstance(v, (str, os.PathLike)) else text(v) for v in values)
    return f"{key}={','.join(listed)}"
