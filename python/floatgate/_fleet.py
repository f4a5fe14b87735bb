"""A trace of many volumes, one device a volume: :func:`fleet`."""

import json
import os
from collections.abc import Sequence
from typing import Any, Union

from arro3.core import Table

from . import _executors, _floatgate, _html, _remote, _work
from ._progress import Tell
from ._settings import Settings, Value, flags, sets


class Fleet:
    """What came of a fleet: a row a volume and scheme."""

    def __init__(self, document: str, table: Table, failures: str | None) -> None:
        self._document = document
        self.document: dict[str, Any] = json.loads(document)
        """What ``floatgate fleet --json`` prints: how figures spread over the volumes (docs/record.md)."""
        self.table = table
        """The rows, in the columns of docs/fleets.md."""
        self.failures = failures
        """What could not be replayed, in a sentence; ``error`` of each row says why. ``None`` if all was."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return _html.dictionaries(self.table)

    def report(self, path: "str | os.PathLike[str]") -> None:
        """Writes the HTML report of ``floatgate fleet --report``."""
        _html.write_report("fleet", self._document, path)

    def __repr__(self) -> str:
        lost = f": {self.failures}" if self.failures else ""
        return f"<floatgate.Fleet: {self.table.num_rows} replays{lost}>"

    def _repr_html_(self) -> str:
        return _html.of_fleet(self.document["results"], self.failures)


def fleet(
    traces: "str | os.PathLike[str] | Sequence[Union[str, os.PathLike[str]]]",
    scheme: str | Sequence[str] = "page",
    *,
    device: str | Settings | None = None,
    host: Settings | None = None,
    run: Settings | None = None,
    options: Settings | None = None,
    config: "str | os.PathLike[str] | None" = None,
    columns: str | None = None,
    volumes_by: str | None = None,
    executor: _executors.Where = None,
    out: "str | os.PathLike[str] | None" = None,
    fresh: bool = False,
    jobs: int | None = None,
    progress: bool | Tell | None = None,
    **settings: Value,
) -> Fleet:
    """Splits a trace of many volumes and replays each on a device of its own, on all processors, as ``floatgate fleet`` does.

    A volume that cannot be replayed keeps its row, with the reason, and so does one that is lost with its process. The
    interpreter is free meanwhile, and Ctrl-C ends it.

    Args:
        traces: trace files, or folders of them; an address may be a folder or a pattern (``s3://bucket/*.csv.gz``).
        scheme: schemes, perhaps with options of their own.
        device: as of :func:`simulate`, and so are ``host``, ``run``, ``options``, ``config``, ``columns`` and ``settings``.
        volumes_by: ``"name"`` or ``"file"``: how volumes of several files belong together (docs/fleets.md).
        executor: who replays the volumes: any executor of ``concurrent.futures``, or a client of Dask; this process if left
            out. Traces and configuration files must be where volumes are replayed, under the same names.
        out: the file of the rows (``.parquet``, ``.csv``). What is done is kept in ``OUT.partial.jsonl`` meanwhile: the same
            call goes on where it was stopped. Without an executor processes of this machine do the work then.
        fresh: begins anew, whatever a fleet that was stopped has left.
        jobs: devices at a time; one a processor if left out.
        progress: with ``executor`` or ``out``: whether to show a bar, or a function to tell, in volumes.

    Raises:
        InputError: settings are wrong, or nothing of the traces can be read.

    >>> fleet("skew:writes=2000", ["page", "fast"]).rows[1]["scheme"]
    'fast'
    """
    if isinstance(device, str):
        device = {"part": device}
    sections = {"device": device, "host": host, "run": run, "scheme": options, "": settings}
    named = [scheme] if isinstance(scheme, str) else list(scheme)
    files = [traces] if isinstance(traces, (str, os.PathLike)) else list(traces)
    found = list(_remote.spread(os.fspath(file) for file in files))
    given = {
        "--scheme": ",".join(named),
        "--config": config,
        "--columns": columns,
        "--volumes-by": volumes_by,
    }
    words = [*_remote.words(found), *flags(given), *sets(sections)]
    if executor is None and out is None:
        return Fleet(*_floatgate.fleet([*words, *flags({"--jobs": jobs}), "--", *found]))
    plan = _floatgate.FleetPlan([*words, "--", *found])
    volumes = plan.volumes(_work.program())
    with _work.work("fleet", play, keepable, out, (".parquet", ".csv"), fresh, progress, "volumes") as work:
        came = work.done({key: errand for _, key, errand in volumes}, executor, jobs)
        return Fleet(*plan.replayed([(volume, *came[key]) for volume, key, _ in volumes], out))


def play(errand: str) -> str:
    """Replays a volume: what executors are given to do."""
    return _floatgate.fleet_volume(_work.here(errand))


def keepable(came: list[dict[str, Any]]) -> bool:
    """Whether it would be the same tomorrow: what could not be replayed may be then."""
    return all("Ok" in result for result in came)
