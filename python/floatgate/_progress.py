"""How far a run is: a line in a terminal, a line of a notebook."""

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

Tell: TypeAlias = Callable[[str, int, int], object]
"""Is called with what is at work (``"reads"``, ``"ages"``, ``"plays"``), how many requests are done and how many there are."""

PATIENCE_S = 0.5
"""Shorter work needs no bar."""


def in_notebook() -> bool:
    """Whether output goes to a notebook."""
    shell = sys.modules.get("IPython")
    made = shell.get_ipython() if shell else None
    return made is not None and hasattr(made, "kernel")


def line(phase: str, done: int, total: int, unit: str = "requests") -> str:
    """A line that says how far it is.

    >>> line("plays", 250, 1000)
    '##########------------------------------  25 %  250 requests'
    """
    share = min(done / total, 1.0) if total else 0.0
    filled = round(share * 40)
    text = f"{'#' * filled}{'-' * (40 - filled)} {share * 100:3.0f} %  {done:,} {unit}"
    return text if phase == "plays" else f"{text}  {phase}"


class Bar:
    """Shows how far work is, once it has taken a while; taken away by :meth:`close`."""

    def __init__(self, unit: str = "requests") -> None:
        self.unit = unit
        self.begun = time.monotonic()
        self.handle: Any = None
        self.width = 0
        self.notebook = in_notebook()

    def __call__(self, phase: str, done: int, total: int) -> None:
        if time.monotonic() - self.begun < PATIENCE_S:
            return
        text = line(phase, done, total, self.unit)
        if self.notebook:
            self.show(text)
        else:
            sys.stderr.write(f"\r{text:<{self.width}}")
            sys.stderr.flush()
            self.width = len(text)

    def show(self, text: str) -> None:
        """Shows a text in the notebook, in place of the one before."""
        notebook: Any = import_module("IPython.display")
        html = notebook.HTML(f"<code>{text}</code>" if text else "")
        if self.handle is None:
            self.handle = notebook.display(html, display_id=True)
        else:
            self.handle.update(html)

    def close(self) -> None:
        """Takes the bar away."""
        if self.handle is not None:
            self.show("")
        elif self.width:
            sys.stderr.write(f"\r{'':<{self.width}}\r")
            sys.stderr.flush()


def chosen(progress: bool | Tell | None, unit: str = "requests") -> Tell | None:
    """Who is told: a function, a bar, or nobody. By default a bar where somebody can see it."""
    if callable(progress):
        return progress
    if progress is None:
        progress = in_notebook() or bool(getattr(sys.stderr, "isatty", lambda: False)())
    return Bar(unit) if progress else None
