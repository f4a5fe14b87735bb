"""Settings and traces as Python has them, and as the words of the command line that the native module reads."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, Union, cast

from arro3.core import Array, DataType, Table
from arro3.core.types import ArrowStreamExportable

Value: TypeAlias = Union[bool, int, float, str, "os.PathLike[str]", Sequence[str], None]
"""A value of a setting: as in a configuration. ``None`` leaves the setting out."""

Settings: TypeAlias = Mapping[str, Value]
"""Settings by their keys, units and all: ``{"dies": 4, "capacity_gib": 1}``."""

Frame: TypeAlias = ArrowStreamExportable | Mapping[str, Any]
"""A trace in memory: anything that exports an Arrow stream, or arrays by the names of the columns."""

Trace: TypeAlias = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], Frame]
"""A file, a bundled trace, a generator, several of them that are merged by time, or a trace in memory."""


def text(value: Value) -> str:
    """A value as it stands behind ``--set KEY=``.

    >>> text(True), text(0.5), text("wrap"), text(["fill", "settle"])
    ('true', '0.5', 'wrap', '["fill", "settle"]')
    """
    item = getattr(value, "item", None)
    if callable(item):  # a number of numpy
        value = cast(Value, item())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(json.dumps(str(word)) for word in value)}]"
    raise TypeError(f"a setting is a number, a text, a truth value or a list of texts, not {value!r}")


def sets(sections: Mapping[str, Settings | None]) -> Iterator[str]:
    """The words of settings by their sections; those of the section ``""`` are named in full.

    >>> list(sets({"device": {"dies": 4, "channels": None}, "": {"host.speed": 2.0}}))
    ['--set', 'device.dies=4', '--set', 'host.speed=2.0']
    """
    for section, settings in sections.items():
        for key, value in (settings or {}).items():
            if value is not None:
                path = f"{section}.{key}" if section else key
                yield from ("--set", f"{path}={text(value)}")


def flags(given: Mapping[str, object]) -> Iterator[str]:
    """The words of flags that have a value; those without one are left out."""
    for flag, value in given.items():
        if value is not None:
            yield from (flag, os.fspath(value) if isinstance(value, os.PathLike) else str(value))


def files(trace: Trace | None) -> list[str] | None:
    """The names of a trace that is not in memory; ``None`` of one that is."""
    if trace is None:
        return []
    if isinstance(trace, (str, os.PathLike)):
        return [os.fspath(trace)]
    if isinstance(trace, Sequence) and not hasattr(trace, "__arrow_c_stream__"):
        return [os.fspath(name) for name in trace]
    return None


def table(trace: Frame) -> ArrowStreamExportable:
    """A trace in memory as an Arrow stream."""
    if isinstance(trace, Mapping):
        return of_columns(trace)
    if not hasattr(trace, "__arrow_c_stream__"):
        raise TypeError(f"a trace is a file, an Arrow table or arrays by name, not {type(trace).__name__}")
    try:
        trace.__arrow_c_stream__()
    except ImportError:
        # pandas exports Arrow only beside pyarrow; its columns are numpy's all the same.
        frame = cast(Any, trace)
        return of_columns({str(name): frame[name].to_numpy() for name in frame.columns})
    return trace


def of_columns(columns: Mapping[str, Any]) -> Table:
    """A table of arrays by name.

    >>> of_columns({"op": ["R", "W"], "offset": [0, 4096], "bytes": [512, 512]}).num_rows
    2
    """
    return Table.from_pydict({name: column(values) for name, values in columns.items()})


def column(values: Any) -> Array:
    """A column: an array of numpy or Arrow, or a list of texts or numbers."""
    if hasattr(values, "__arrow_c_array__"):
        return Array.from_arrow(values)
    if getattr(getattr(values, "dtype", None), "kind", "O") not in "OUT":
        return Array.from_numpy(values)
    listed: list[object] = list(cast(Iterable[object], values))
    texts = any(isinstance(value, str) for value in listed)
    return Array(listed, DataType.utf8() if texts else DataType.uint64())
