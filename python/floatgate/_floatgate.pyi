"""The native module. Arguments are the words of the command line; results are texts of JSON, and tables."""

from collections.abc import Callable
from typing import Final, TypedDict, type_check_only

from arro3.core import Table
from arro3.core.types import ArrowStreamExportable

__all__ = ["FRAME", "command", "read_trace", "simulate", "trace_info"]

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
