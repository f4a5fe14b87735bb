"""A laboratory and workshop for flash translation layers (FTLs).

>>> import floatgate
>>> run = floatgate.simulate("fast", trace="sequential:space=4096:requests=2000:n=4")
>>> run.summary["write_amplification"]
1.0
"""

from importlib.metadata import version

from . import plot
from ._fleet import Fleet, fleet
from ._run import Run, simulate
from ._sweep import Sweep, sweep
from ._traces import read_trace, trace_info
from .errors import BugError, FloatgateError, InputError

__all__ = [
    "BugError",
    "Fleet",
    "FloatgateError",
    "InputError",
    "Run",
    "Sweep",
    "fleet",
    "plot",
    "read_trace",
    "simulate",
    "sweep",
    "trace_info",
]
__version__ = version("floatgate")
