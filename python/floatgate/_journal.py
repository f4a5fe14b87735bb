"""What is done of a sweep or a fleet, kept beside the file to come, one line a cell or a volume."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from .errors import InputError


class Journal:
    """The journal of the ``work`` (a sweep, a fleet) that writes ``out``: what came of each cell or volume, by its key.

    A line that was torn by a stop is dropped; a file that is no journal is left alone.
    """

    def __init__(self, out: Path, fresh: bool, work: str) -> None:
        self.work = work
        # The first line: nobody else's file begins so.
        self.header = f'{{"floatgate_python_{work}":1}}\n'
        self.path = out.with_name(f"{out.name}.partial.jsonl")
        self.came: dict[str, str] = {}
        self.file: IO[str] = self.path.open("a+", encoding="utf-8", newline="\n")
        self.alone()
        self.file.seek(0)
        good = self.read(self.file)
        if fresh:
            self.came, good = {}, 0
        self.file.truncate(good)
        if good == 0:
            self.file.write(self.header)
            self.file.flush()

    def alone(self) -> None:
        """Refuses a second call with the same file, where the system can tell."""
        try:
            import fcntl
        except ImportError:
            return
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.close()
            raise InputError(f"another {self.work} writes {self.path}") from None

    def read(self, lines: Iterable[str]) -> int:
        """Takes the lines, and returns how many bytes of them are good."""
        good = 0
        for number, line in enumerate(lines):
            if not line.endswith("\n") and (number or self.header.startswith(line)):
                break
            if number == 0 and line != self.header:
                self.file.close()
                raise InputError(f"{self.path} is no journal of a {self.work} by Python: move it away, or name another file")
            if number:
                came: dict[str, str] = json.loads(line)
                self.came[came["cell"]] = came["came"]
            good += len(line.encode())
        return good

    def add(self, cell: str, came: str) -> None:
        """Keeps what came of one."""
        self.came[cell] = came
        self.file.write(json.dumps({"cell": cell, "came": came}) + "\n")
        self.file.flush()

    def close(self, done: bool) -> None:
        """Ends it; it goes when the sweep is done."""
        self.file.close()
        if done:
            os.unlink(self.path)
