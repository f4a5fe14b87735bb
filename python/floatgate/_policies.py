"""Policies in plain Python: where page mapping puts a page, and what it collects."""

from typing import TYPE_CHECKING, Any

from ._device import Device
from .errors import PolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Numbers = NDArray[np.int64]

CLASSES_MAX = 64
"""Most append points of a placement."""


class Columns:
    """Numbers of several things at once: arrays of ``int64``, all of one length, which cannot be written.

    They are views on memory of their own: keep them as long as you like.
    """

    def __init__(self, data: bytes, columns: int) -> None:
        import numpy

        self._columns: list[Numbers] = list(numpy.frombuffer(data, dtype="<i8").reshape(columns, -1))

    def __len__(self) -> int:
        return len(self._columns[0])


class Writes(Columns):
    """Pages that the host is about to write, in the order of their writes; ``-1`` stands for none.

    What is told of the device (``last``, ``count``, ``lies_in``) is as it was before the first of them.
    """

    def __init__(self, now: int, data: bytes) -> None:
        super().__init__(data, 6)
        self.now = now
        """Number of the first write; the start state ``full`` has numbers too, 1 to ``logical_pages``."""

    @property
    def page(self) -> "Numbers":
        """The logical page."""
        return self._columns[0]

    @property
    def request_pages(self) -> "Numbers":
        """Pages of its request; 1 where the write was not known ahead."""
        return self._columns[1]

    @property
    def stream(self) -> "Numbers":
        """The stream that the request names."""
        return self._columns[2]

    @property
    def last(self) -> "Numbers":
        """Number of the page's last write; 0 if it has no content."""
        return self._columns[3]

    @property
    def count(self) -> "Numbers":
        """Writes of the page since it last had no content."""
        return self._columns[4]

    @property
    def lies_in(self) -> "Numbers":
        """The append point for which the block was taken that the page lies in now."""
        return self._columns[5]


class Moved(Columns):
    """The valid pages of a block that is collected, in the order in which they move; at least one."""

    def __init__(self, now: int, block: int, append_point: int, data: bytes) -> None:
        super().__init__(data, 3)
        self.now = now
        """Number of the host's write that is in progress, or comes next."""
        self.block = block
        """The block."""
        self.lies_in = append_point
        """The append point for which it was taken."""

    @property
    def page(self) -> "Numbers":
        """The logical page."""
        return self._columns[0]

    @property
    def last(self) -> "Numbers":
        """Number of its last write by the host."""
        return self._columns[1]

    @property
    def count(self) -> "Numbers":
        """Its writes by the host since it last had no content."""
        return self._columns[2]


class Blocks(Columns):
    """The blocks of a die that can be collected: full, with at least one invalid page; in the order in which they were
    taken. At least one."""

    def __init__(self, die: int, now: int, pages: int, data: bytes) -> None:
        super().__init__(data, 9)
        self.die = die
        """The die that needs room."""
        self.now = now
        """Number of the host's write that is in progress, or comes next."""
        self.pages = pages
        """Pages of a block."""

    @property
    def block(self) -> "Numbers":
        """Number of the block on the device."""
        return self._columns[0]

    @property
    def valid(self) -> "Numbers":
        """Valid pages."""
        return self._columns[1]

    @property
    def append_point(self) -> "Numbers":
        """The append point for which it was taken."""
        return self._columns[2]

    @property
    def erases(self) -> "Numbers":
        """Erases of it so far."""
        return self._columns[3]

    @property
    def taken(self) -> "Numbers":
        """Running number of its take on the die."""
        return self._columns[4]

    @property
    def born(self) -> "Numbers":
        """Writes of the host before it was taken."""
        return self._columns[5]

    @property
    def age(self) -> "Numbers":
        """Programs of the device since its last change (a program or an invalidation), and one more."""
        return self._columns[6]

    @property
    def last_sum(self) -> "Numbers":
        """Over its valid pages: the numbers of their last writes by the host."""
        return self._columns[7]

    @property
    def count_sum(self) -> "Numbers":
        """Over its valid pages: their writes by the host."""
        return self._columns[8]


class Placement:
    """Which append point a page takes, for the scheme ``page``: ``simulate("page", placement=MyPlacement())``.

    Subclass it, say how many append points there are, and write :meth:`place` and :meth:`place_moved`. A die has
    one open block for each append point.

    >>> import floatgate, numpy
    >>> class OftenApart(floatgate.Placement):
    ...     classes = 3
    ...     def place(self, writes):
    ...         return (writes.count >= 3).astype(int)
    ...     def place_moved(self, moved):
    ...         return 2
    >>> load = "zipf:space=4096:requests=8000:theta=1.1"
    >>> run = floatgate.simulate("page", placement=OftenApart(), trace=load)
    >>> run.counters["extra"]["class_host_1"] > 0
    True
    """

    classes: int = 2
    """Append points, 1 to 64. They are numbered from 0."""
    chunk: int = 4096
    """Most writes of one call, and the requests of the trace that are looked at ahead for them. With 1 every write is asked
    for when it is due, and all that is told of it is exact: slow."""
    class_of_full: int = 0
    """The append point for which the blocks of the start state ``full`` count as taken."""
    moves_together: bool = False
    """Promises that all that one collection moves goes to one append point. Then a die needs fewer spare blocks."""

    def begin(self, device: Device) -> None:
        """A device is made: called before anything else, and again whenever the simulator makes another one, so it begins
        anew whatever the policy keeps."""

    def place(self, writes: Writes) -> "ArrayLike":
        """Where these pages go: a whole number for each, or one for all.

        Called once for each chunk of writes of the trace, and for a single write where it is not known what comes: in the
        ageing steps ``fill``, ``settle`` and the like, with several flows, and behind a write buffer or a cache.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method place")

    def place_moved(self, moved: Moved) -> "ArrayLike":
        """Where these pages of a block go that is collected: a whole number for each, or one for all."""
        raise NotImplementedError(f"{type(self).__name__} needs a method place_moved")


class Selection:
    """Which block a collection takes, for the scheme ``page``: ``simulate("page", selection=MySelection())``.

    >>> import floatgate
    >>> class Greedy(floatgate.Selection):
    ...     def select(self, blocks):
    ...         return blocks.valid.argmin()
    >>> load = "skew:space=4096:distinct=2000:writes=6000"
    >>> own = floatgate.simulate("page", selection=Greedy(), trace=load)
    >>> own.counters == floatgate.simulate("page", trace=load).counters
    True
    """

    def begin(self, device: Device) -> None:
        """As :meth:`Placement.begin`."""

    def select(self, blocks: Blocks) -> "ArrayLike":
        """The place in these arrays of the block to collect. Or several, in order: then the next collections of this
        die take the others without another call."""
        raise NotImplementedError(f"{type(self).__name__} needs a method select")


def called(policy: object, method: str, *arguments: Any) -> Any:
    """What a method of the user's gives; what it raises comes out as the cause of a :class:`PolicyError`."""
    try:
        return getattr(policy, method)(*arguments)
    except Exception as error:
        what = f"{type(policy).__name__}.{method} raised {type(error).__name__}"
        raise PolicyError(f"{what}: {error}" if str(error) else what) from error


def numbers(what: str, answer: Any, below: int, of: str) -> "Numbers":
    """An answer as whole numbers from 0 on, all of them below that.

    >>> numbers("Mine.place", [0, 1, 2], 2, "append points")
    Traceback (most recent call last):
    floatgate.errors.PolicyError: Mine.place returned 2 at place 2: there are 2 append points, from 0 on
    """
    import numpy

    if answer is None:
        raise PolicyError(f"{what} returned nothing")
    try:
        array = numpy.asarray(answer)
    except ValueError as error:
        raise PolicyError(f"{what} returned {answer!r}, which is no array: {error}") from error
    if array.size == 0:
        return numpy.zeros(0, dtype=numpy.int64)
    if array.dtype.kind not in "iub" or array.ndim > 1:
        shape = f", shape {array.shape}" if array.ndim else ""
        shown = numpy.array2string(array, threshold=6)
        raise PolicyError(f"{what} returned {shown} ({array.dtype}{shape}): whole numbers are wanted, in one dimension")
    wrong = numpy.flatnonzero((array < 0) | (array >= below))
    if wrong.size:
        first = int(wrong[0])
        at = f" at place {first}" if array.ndim else ""
        raise PolicyError(f"{what} returned {array.flat[first]}{at}: there are {below} {of}, from 0 on")
    whole: Numbers = array.astype(numpy.int64)
    return whole


class PlacementCalls:
    """A placement as the native module calls it: rows come as bytes, answers go as bytes."""

    def __init__(self, placement: Placement) -> None:
        name = type(placement).__name__
        limits = {"classes": (1, CLASSES_MAX), "chunk": (1, 1 << 24), "class_of_full": (0, placement.classes - 1)}
        for key, (least, most) in limits.items():
            value = getattr(placement, key)
            if not isinstance(value, int) or not least <= value <= most:
                raise PolicyError(f"{name}.{key} = {value!r}: a whole number from {least} to {most}")
        self.placement = placement
        self.calls = self
        self.classes = placement.classes
        self.chunk = placement.chunk
        self.class_of_full = placement.class_of_full
        self.moves_together = bool(placement.moves_together)

    def begin(self, *shape: Any) -> None:
        called(self.placement, "begin", Device(*shape))

    def place(self, now: int, data: bytes) -> bytes:
        writes = Writes(now, data)
        return self.of_all("place", len(writes), writes)[1]

    def place_moved(self, now: int, block: int, append_point: int, data: bytes) -> bytes:
        moved = Moved(now, block, append_point, data)
        named, answer = self.of_all("place_moved", len(moved), moved)
        if self.moves_together and (named != named[0]).any():
            other = int(named[(named != named[0]).argmax()])
            what = f"{type(self.placement).__name__}.place_moved"
            raise PolicyError(f"{what} returned {named[0]} and {other}: with moves_together all go to one append point")
        return answer

    def of_all(self, method: str, length: int, asked: Columns) -> "tuple[Numbers, bytes]":
        """An answer for each of so many pages: as numbers, and as bytes."""
        import numpy

        what = f"{type(self.placement).__name__}.{method}"
        named = numbers(what, called(self.placement, method, asked), self.classes, "append points")
        if named.ndim == 0:
            named = numpy.full(length, named)
        if len(named) != length:
            raise PolicyError(f"{what} returned {len(named)} append points for {length} pages")
        return named, named.astype(numpy.uint8).tobytes()


class SelectionCalls:
    """A selection as the native module calls it."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection

    def begin(self, *shape: Any) -> None:
        called(self.selection, "begin", Device(*shape))

    def select(self, die: int, now: int, pages: int, data: bytes) -> list[int]:
        blocks = Blocks(die, now, pages, data)
        what = f"{type(self.selection).__name__}.select"
        chosen = numbers(what, called(self.selection, "select", blocks), len(blocks), "blocks to choose from")
        order = [int(place) for place in chosen.reshape(-1)]
        if not order:
            raise PolicyError(f"{what} returned no block, of {len(blocks)}")
        if len(set(order)) < len(order):
            again = next(place for place in order if order.count(place) > 1)
            raise PolicyError(f"{what} returned {again} twice")
        return order


class Own:
    """What of a run is written in Python."""

    def __init__(self, placement: Placement | None, selection: Selection | None) -> None:
        for key, given, kind in (("placement", placement, Placement), ("selection", selection, Selection)):
            if given is not None and not isinstance(given, kind):
                hint = f"{given.__name__}()" if isinstance(given, type) else f"an object of a class of floatgate.{kind.__name__}"
                raise TypeError(f"{key}= takes {hint}, not {given!r}")
        self.placement = PlacementCalls(placement) if placement is not None else None
        self.selection = SelectionCalls(selection) if selection is not None else None
        self.scheme = None
