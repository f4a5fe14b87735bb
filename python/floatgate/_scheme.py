"""Whole schemes in plain Python, for small devices, and the tests that every scheme must pass."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from . import _floatgate
from ._device import Device
from .errors import FloatgateError, PolicyError


class Scheme:
    """A flash translation layer: ``simulate(MyScheme, ...)``, ``test_scheme(MyScheme)``.

    It is made for a device, and then told to format the flash or to recover what the flash holds. It is called for
    every page, which makes it slow: some microseconds a call (docs/python.md). examples/python/one_log.py is a whole one.

    A method gets the flash for as long as it lasts. What it raises ends the run as the cause of a :class:`PolicyError`;
    :class:`Refused` says that this device cannot be.
    """

    def __init__(self, device: Device) -> None:
        """Makes empty tables. Raise :class:`Refused` if the device is too small."""

    @classmethod
    def tables(cls, device: Device) -> list[tuple[str, int, int]]:
        """The tables of a device in memory, for the record: name, entries, bits of an entry."""
        return []

    def format(self, flash: "_floatgate.Flash", full: bool) -> None:
        """A fresh device: every block is erased. If ``full``, every logical page is to have been written once:
        :meth:`Flash.preload`."""
        raise NotImplementedError

    def recover(self, flash: "_floatgate.Flash", full_scan: bool) -> None:
        """Makes the tables from what the flash holds after a power cut at any point (docs/recovery.md).

        If ``full_scan``, it relies on nothing but spare areas. Raise :class:`Refused` if no power cut can leave what the
        flash holds.
        """
        raise NotImplementedError

    def write_page(self, flash: "_floatgate.Flash", page: int, slot: int) -> None:
        """Writes a logical page; ``slot`` is its place in the host's buffer, for :meth:`Flash.program`."""
        raise NotImplementedError

    def read_page(self, flash: "_floatgate.Flash", page: int, slot: int) -> None:
        """Reads a logical page: :meth:`Flash.read`, or :meth:`Flash.absent` if it has no content."""
        raise NotImplementedError

    def trim_page(self, flash: "_floatgate.Flash", page: int, slot: int) -> None:
        """Drops a logical page: it reads as zeroes from now on."""
        raise NotImplementedError

    def shutdown(self, flash: "_floatgate.Flash") -> None:
        """A clean end: writes what a fast next start needs."""

    def audit(self, flash: "_floatgate.Flash") -> int:
        """Checks the tables against each other and the flash, which can only be looked at; raises what does not agree.
        Returns the number of logical pages that have content."""
        raise NotImplementedError


MakesScheme: TypeAlias = Callable[[Device], Scheme]
"""A subclass of :class:`Scheme`, or what makes one of a device: ``functools.partial(MyScheme, log_blocks=3)``."""


class SchemeCalls:
    """A scheme as the native module calls it."""

    def __init__(self, make: MakesScheme) -> None:
        self.calls = self
        self.factory = make
        inner = getattr(make, "func", make)
        self.name = str(getattr(inner, "__name__", type(inner).__name__))

    def make(self, *shape: Any) -> Scheme:
        try:
            made = self.factory(Device(*shape))
        except Exception as error:
            from .errors import Refused

            if isinstance(error, Refused):
                raise
            raise PolicyError(f"{self.name} raised {type(error).__name__}: {error}") from error
        if not isinstance(made, Scheme):
            raise PolicyError(f"{self.name} made {made!r}, which is no floatgate.Scheme")
        return made

    def tables(self, *shape: Any) -> list[tuple[str, int, int]]:
        inner = getattr(self.factory, "func", self.factory)
        tables = getattr(inner, "tables", None)
        if tables is None:
            return []
        named: list[tuple[str, int, int]] = tables(Device(*shape))
        return named

    def blame(self, scheme: object, method: str, error: BaseException) -> BaseException:
        """What comes out where a method has raised that."""
        if not isinstance(error, Exception):
            return error
        what = f"{type(scheme).__name__}.{method} raised {type(error).__name__}"
        blamed = PolicyError(f"{what}: {error}" if str(error) else what)
        blamed.__cause__ = error
        return blamed


class OwnScheme:
    """What of a run is written in Python, where it is the whole scheme."""

    def __init__(self, make: MakesScheme) -> None:
        self.placement = None
        self.selection = None
        self.scheme = SchemeCalls(make)


class Tested(NamedTuple):
    """What a check has come to."""

    check: str
    """Its name."""
    tried: int
    """Devices, power cuts or recoveries that were tried."""
    refused: int
    """Of them, those that the scheme has refused."""


CHECKS = (
    "every_shape",
    "random_devices",
    "power_cuts",
    "dies_in_flight",
    "unreadable_pages",
    "forged_pages",
    "any_bytes",
)
"""The checks of :func:`test_scheme`, in their order."""


def test_scheme(
    scheme: MakesScheme,
    *,
    times: int = 1,
    seed: int = 1,
    replay: str | None = None,
    tell: Callable[[Tested], object] | None = None,
) -> list[Tested]:
    """Does to a scheme what the tests of Floatgate do to theirs (docs/architecture.md).

    Random requests on devices of many shapes, every byte compared; power cuts at every operation, of the recoveries too;
    cuts with several dies in flight; pages that have rotted, and pages that say anything.

    Args:
        scheme: a subclass of :class:`Scheme`, or what makes one of a device.
        times: so many times a tenth of what is random in the tests of a scheme in Rust.
        seed: the first seed of what is random.
        replay: only the case of this line, which a failure printed.
        tell: is called after every check.

    Raises:
        TestFailed: the first check that fails, with the line that replays it. What the scheme raised is its cause.
    """
    own = OwnScheme(scheme)
    if replay is not None:
        return [Tested("replay", _floatgate.replay_scheme(own, replay), 0)]
    if times < 1:
        raise FloatgateError(f"times = {times}: at least 1")
    done = []
    for check in CHECKS:
        done.append(Tested(check, *_floatgate.check_scheme(own, check, times, seed)))
        if tell is not None:
            tell(done[-1])
    return done


# pytest takes a function of this name for a test.
test_scheme.__test__ = False  # type: ignore[attr-defined]
