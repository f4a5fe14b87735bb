"""Work of many pieces: done on whatever executor there is, kept in a journal, told to whoever wants to know."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import _executors, _floatgate, _remote
from ._journal import Journal
from ._progress import Bar, Tell, chosen
from .errors import InputError

Keepable = Callable[[Any], bool]
"""Whether what came of an errand would be the same tomorrow."""


class Work:
    """Errands to be done: ``play`` does one, the journal keeps what came of it if it is ``keepable``, and ``tell`` is told how many
    are done."""

    def __init__(self, play: _executors.Play, keepable: Keepable, journal: Journal | None, tell: Tell | None) -> None:
        self.play = play
        self.keepable = keepable
        self.journal = journal
        self.tell = tell

    def done(
        self, errands: dict[str, str], where: _executors.Where, jobs: int | None, already: int = 0
    ) -> dict[str, _executors.Came]:
        """What came of the errands, by their keys; those that the journal has are not done again. ``already``: what else is
        done."""
        came: dict[str, _executors.Came] = {}
        if self.journal is not None:
            came = {key: (self.journal.came[key], "") for key in errands if key in self.journal.came}
        left = {key: errand for key, errand in errands.items() if key not in came}
        total = already + len(errands)
        for key, what in _executors.all_of(self.play, left, where, jobs):
            came[key] = what
            if self.journal is not None and what[0] is not None and self.keepable(json.loads(what[0])):
                self.journal.add(key, what[0])
            if self.tell is not None:
                self.tell("plays", already + len(came), total)
        return came


@contextmanager
def work(
    called: str,
    play: _executors.Play,
    keepable: Keepable,
    out: "str | os.PathLike[str] | None",
    endings: tuple[str, ...],
    fresh: bool,
    progress: bool | Tell | None,
    unit: str,
) -> Iterator[Work]:
    """Work whose results go to ``out``, if that is named: its journal goes when the block ends well."""
    journal = None
    if out is not None:
        path = Path(out)
        if path.suffix not in endings:
            raise InputError(f"{path}: the file name does not tell the format\n  help: end it in {' or '.join(endings)}")
        journal = Journal(path, fresh, called)
    tell = chosen(progress, unit)
    done = False
    try:
        yield Work(play, keepable, journal, tell)
        done = True
    finally:
        if journal is not None:
            journal.close(done)
        if isinstance(tell, Bar):
            tell.close()


def here(errand: str) -> str:
    """An errand that was written elsewhere, with the copies of traces that this machine has."""
    given = json.loads(errand)
    found = _remote.here(given["words"])
    return errand if found == given["words"] else json.dumps({**given, "words": found})


def program() -> str:
    """What tells this program from others: a scheme that was changed and built again is another."""
    native = os.stat(_floatgate.__file__)
    return f"{version('floatgate')} {native.st_size} {native.st_mtime_ns}"
