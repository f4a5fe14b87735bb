"""A trace of many volumes, one device a volume: :func:`fleet`."""

import json
import os
from collections.abc import Sequence
from typing import Any, Union

from arro3.core import Table

from . import _floatgate, _html
from ._settings import Settings, Value, flags, sets


class Fleet:
    """What came of a fleet: a row a volume and scheme."""

    def __init__(self, document: str, table: Table, failures: str | None) -> None:
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
    jobs: int | None = None,
    **settings: Value,
) -> Fleet:
    """Splits a trace of many volumes and replays each on a device of its own, on all processors, as ``floatgate fleet`` does.

    A volume that cannot be replayed keeps its row, with the reason. The interpreter is free meanwhile, and Ctrl-C ends it.

    Args:
        traces: trace files, or folders of them.
        scheme: schemes, perhaps with options of their own.
        device: as of :func:`simulate`, and so are ``host``, ``run``, ``options``, ``config``, ``columns`` and ``settings``.
        volumes_by: ``"name"`` or ``"file"``: how volumes of several files belong together (docs/fleets.md).
        jobs: devices at a time; one a processor if left out.

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
    given = {
        "--scheme": ",".join(named),
        "--config": config,
        "--columns": columns,
        "--volumes-by": volumes_by,
        "--jobs": jobs,
    }
    words = [*flags(given), *sets(sections), "--", *(os.fspath(file) for file in files)]
    return Fleet(*_floatgate.fleet(words))
