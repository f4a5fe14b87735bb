"""The native module. Arguments are the words of the command line; results are texts of JSON, and tables."""

from collections.abc import Callable
from os import PathLike
from typing import Final, TypeAlias, TypedDict, final, type_check_only

from arro3.core import Table
from arro3.core.types import ArrowStreamExportable
from typing_extensions import Self

from ._policies import Own
from ._scheme import OwnScheme

__all__ = [
    "FRAME",
    "Flash",
    "FleetPlan",
    "Oob",
    "SweepPlan",
    "Token",
    "check_scheme",
    "command",
    "fleet",
    "fleet_volume",
    "read_rows",
    "read_trace",
    "recorded",
    "replay_scheme",
    "report_of",
    "simulate",
    "sweep_cell",
    "sweep_printed",
    "sweep_table",
    "sweep_write",
    "trace_info",
    "write_trace",
]

FRAME: Final[str]

@type_check_only
class _Told(TypedDict):
    document: str
    summary: str
    text: str
    timeseries: Table

@type_check_only
class _Done(_Told):
    blocks: Table
    requests: Table | None
    timeline: Table | None

def simulate(
    words: list[str],
    trace: ArrowStreamExportable | None,
    keep: tuple[bool, bool],
    tell: Callable[[str, int, int], object] | None,
    own: Own | OwnScheme,
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

_Replayed: TypeAlias = tuple[str, Table, str | None]

@final
class FleetPlan:
    def __new__(cls, words: list[str]) -> Self: ...
    def volumes(self, program: str) -> list[tuple[int, str, str]]: ...
    def replayed(self, came: list[tuple[int, str | None, str]], out: str | PathLike[str] | None) -> _Replayed: ...

def fleet(words: list[str]) -> _Replayed: ...
def fleet_volume(errand: str) -> str: ...
def recorded(document: str) -> _Told: ...
def report_of(kind: str, document: str) -> str: ...
def read_rows(kind: str, path: str | PathLike[str]) -> Table: ...
def write_trace(trace: ArrowStreamExportable, path: str | PathLike[str]) -> None: ...
def sweep_cell(errand: str) -> str: ...
def sweep_table(text: str) -> Table: ...
def sweep_printed(text: str) -> str: ...
def sweep_write(text: str, path: str | PathLike[str]) -> None: ...
def check_scheme(own: OwnScheme, check: str, times: int, seed: int) -> tuple[int, int]: ...
def replay_scheme(own: OwnScheme, line: str) -> int: ...
@final
class Token:
    """The end of an operation of the flash. Good in the call in which it was made."""

@final
class Oob:
    """What the spare area of a page says."""

    @property
    def page(self) -> int:
        """The logical page, or the number of the mapping page."""

    @property
    def role(self) -> str:
        """What the page is for: ``data``, ``map``, ``log`` and others."""

    @property
    def tag(self) -> int:
        """A few bits for the scheme (32)."""

    @property
    def sequence(self) -> int:
        """Grows with every program on the device."""

    @property
    def spare(self) -> bytes:
        """The scheme's own bytes: 64, zeroes if it wrote none."""

@final
class Flash:
    """The flash, for the length of the call of a :class:`floatgate.Scheme` that it is given to.

    Every operation returns a token for its end, and takes one to wait for: ``after``. A die works in the order of the calls;
    name a token only where work crosses dies or waits for its translation. Pages ``at`` and blocks are
    numbered over all dies.
    """

    def read(self, slot: int, at: int, after: Token | None = None) -> Token:
        """Reads a page into the host's buffer."""

    def program(
        self,
        slot: int,
        at: int,
        page: int,
        *,
        role: str = "data",
        tag: int = 0,
        spare: bytes | None = None,
        after: Token | None = None,
    ) -> Token:
        """Programs a page from the host's buffer; ``page``, ``role``, ``tag`` and at most 64 bytes go to its spare area."""

    def absent(self, slot: int, after: Token | None = None) -> Token:
        """A page of the request needs no operation: it reads as zeroes, or is trimmed."""

    def copy(
        self,
        source: int,
        to: int,
        page: int,
        *,
        role: str = "data",
        tag: int = 0,
        spare: bytes | None = None,
        after: Token | None = None,
    ) -> Token:
        """Copies a page: a read and a program."""

    def erase(self, block: int, *, map: bool = False, after: Token | None = None) -> Token:
        """Erases a block of data, or of mapping pages."""

    def read_oob(self, at: int, after: Token | None = None) -> tuple[Oob | None, Token]:
        """Reads a spare area; ``None`` where the page is erased or cannot be read, and in a simulation."""

    def read_map(self, at: int, after: Token | None = None) -> tuple[bytes | None, Token]:
        """Reads a mapping page; ``None`` instead of bytes as with :meth:`read_oob`."""

    def program_map(
        self,
        at: int,
        number: int,
        data: bytes,
        *,
        tag: int = 0,
        spare: bytes | None = None,
        after: Token | None = None,
    ) -> Token:
        """Programs a mapping page, with bytes up to those of a page."""

    def replaced(self, old: int, done: Token) -> None:
        """The program that ends with ``done`` has replaced the page at ``old``, on another die."""

    def keeps(self, old: int, die: int) -> None:
        """The page at ``old`` is needed until ``die`` has done all that it was called for so far."""

    def drain(self) -> None:
        """What is called from now on begins when all that was called so far is done, on every die."""

    def finishes(self, done: Token) -> None:
        """The pages of the host's request are not safe before ``done``."""

    def join(self, a: Token, b: Token) -> Token:
        """A token that is done when both are."""

    def preload(self, block: int, pages: list[int]) -> None:
        """Fills an erased block with logical pages, without counting it or taking time: in ``format`` only."""

    def written(self, block: int) -> int:
        """Pages of a block up to the last one programmed."""

    def erases(self, block: int) -> int:
        """Erases of a block so far."""
