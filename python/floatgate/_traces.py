"""Traces: as tables, and what is in them."""

import json
from typing import Any, cast

from arro3.core import Table

from . import _floatgate, _remote
from ._settings import Frame, Trace, files, flags, table


def read_trace(
    trace: Trace = "oltp-postgres",
    *,
    format: str | None = None,
    columns: str | None = None,
    volume: str | None = None,
    page_bytes: int | None = None,
) -> Table:
    """A trace as a table, which :func:`simulate` takes as it is, or changed.

    The columns: ``arrival_ns`` (u64, from the first request on), ``op`` (``R`` read, ``W`` write, ``T`` trim, ``Z`` write
    zeroes, ``F`` flush), ``volume`` (u32), ``offset`` and ``bytes`` (u64), ``stream`` (u64, null if the request names none).
    A frame of one's own needs ``op``, ``offset`` and ``bytes``.

    Args:
        trace: a file in any format of docs/formats.md, a bundled trace, a generator, or a list of them, merged by time.
        format: the format, where detection should not decide.
        columns: what the columns of a CSV or Parquet file hold.
        volume: only the requests of this volume.
        page_bytes: bytes of a page, in formats that count in pages; 4096 if left out.

    Raises:
        InputError: the trace cannot be read.

    >>> table = read_trace("sequential:space=64:requests=3:n=2")
    >>> table["offset"].to_pylist()
    [0, 8192, 16384]
    """
    named = files(trace)
    if named is None:
        raise TypeError("this trace is in memory already")
    words = [*_remote.words(named), *reading(format, columns, volume, page_bytes)]
    return _floatgate.read_trace([*words, "--", *named])


def trace_info(
    trace: Trace = "oltp-postgres",
    *,
    format: str | None = None,
    columns: str | None = None,
    volume: str | None = None,
    page_bytes: int | None = None,
    log_window: int | None = None,
) -> dict[str, Any]:
    """What kind of workload a trace is: what ``floatgate trace info --json`` prints.

    Args:
        trace: as of :func:`read_trace`, or a trace in memory.
        format: as of :func:`read_trace`, and so are ``columns``, ``volume`` and ``page_bytes``.
        log_window: pages that a log area takes: tells how many overwrites come back within it.

    Raises:
        InputError: the trace cannot be read.

    >>> info = trace_info("zipf:space=4096:requests=1000:seed=1")
    >>> info["statistics"]["requests"]
    1000
    """
    named = files(trace)
    words = [*_remote.words(named or []), *reading(format, columns, volume, page_bytes)]
    words += flags({"--log-window": log_window})
    frame = table(cast(Frame, trace)) if named is None else None
    info: dict[str, Any] = json.loads(
        _floatgate.trace_info([*words, "--", *(named or [_floatgate.FRAME])], frame)
    )
    return info


def reading(
    format: str | None, columns: str | None, volume: str | None, page_bytes: int | None
) -> list[str]:
    """The words that say how a trace is read."""
    given = {"--from": format, "--columns": columns, "--volume": volume, "--page-bytes": page_bytes}
    return [*flags(given)]
