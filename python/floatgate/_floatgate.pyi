"""The native module. Arguments are the words of the command line; results are texts of JSON, and tables."""

from collections.abc import Callable
from os import PathLike
from typing import Final, TypeAlias, TypedDict, final, type_check_only

from arro3.core import Table
from arro3.core.types import ArrowStreamExportable
from typing_extensions import Self

__all__ = [
    "FRAME",
    "SweepPlan",
    "command",
    "fleet",
    "read_trace",
    "simulate",
    "sweep_cell",
    "sweep_printed",
    "sweep_table",
    "sweep_write",
    "trace_info",
]

FRAME: Final[str]

@type_check_only
class _Done(TypedDict):
    document: str
    summary: str
    text: str
    timeseries: Table
    blocks: Table
    requests: Table | None
    timeline: Table | None

def simulate(
    words: list[str],
    trace: ArrowStreamExportable | None,
    requests: bool,
    timeline: bool,
    tell: Callable[[str, int, int], object] | None,
) -> _Done: ...
def read_trace(words: list[str]) -> Table: ...
def trace_info(words: list[str], trace: ArrowStreamExportable | None) -> str: ...
def command(words: list[str]) -> int: ...

_Cell: TypeAlias = tuple[str, str, int, str | None, str | None]

@final
class SweepPlan:
    def __new__(cls, words: list[str]) -> Self: ...
    def cells(self, program: str, keep_records: bool) -> list[_Cell]: ...
    def document(self, came: list[tuple[str | None, str] | None]) -> str: ...

def fleet(words: list[str]) -> tuple[str, Table, str | None]: ...
def sweep_cell(errand: str) -> str: ...
def sweep_table(text: str) -> Table: ...
def sweep_printed(text: str) -> str: ...
def sweep_write(text: str, path: str | PathLike[str]) -> None: ...
