"""What the tests share."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import pytest

# A shell lets what it starts in the background ignore Ctrl-C, which tests press.
signal.signal(signal.SIGINT, signal.default_int_handler)

LOAD = "skew:space=4096:distinct=2000:writes=6000"
"""Enough writes that every scheme collects, in a fraction of a second."""


class Command(Protocol):
    def __call__(self, *words: str) -> "subprocess.CompletedProcess[str]": ...


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The command of this installation, in the folder of the test."""

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        program = [sys.executable, "-m", "floatgate", *words]
        return subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, check=False)

    return run


def document(command: Command, *words: str) -> dict[str, Any]:
    """What ``floatgate run --json`` prints."""
    ran = command("run", "--json", *words)
    assert ran.returncode == 0, ran.stderr
    printed: dict[str, Any] = json.loads(ran.stdout)
    return printed
