"""The command ``floatgate``, as it is without Python."""

import sys

from . import _floatgate


def main() -> int:
    """Does what the arguments of the program say, and returns its exit code."""
    return _floatgate.command(["floatgate", *sys.argv[1:]])
