"""A laboratory and workshop for flash translation layers (FTLs).

>>> import floatgate
>>> run = floatgate.simulate("fast", trace="sequential:space=4096:requests=2000:n=4")
>>> run.summary["write_amplification"]
1.0
"""

from importlib.metadata import version

from . import plot
from ._fleet import Fleet, fleet
from ._device import Device
from ._floatgate import Flash, Oob, Token
from ._policies import Blocks, Moved, Placement, Selection, Writes
from ._run import Run, simulate
from ._scheme import Scheme, Tested, test_scheme
from ._sweep import Sweep, sweep
from ._traces import read_trace, trace_info
from .errors import BugError, FlashFailed, FloatgateError, InputError, PolicyError, Refused, TestFailed

__all__ = [
    "Blocks",
    "BugError",
    "Device",
    "Flash",
    "FlashFailed",
    "Fleet",
    "FloatgateError",
    "InputError",
    "Moved",
    "Oob",
    "Placement",
    "PolicyError",
    "Refused",
    "Run",
    "Scheme",
    "Selection",
    "Sweep",
    "TestFailed",
    "Tested",
    "Token",
    "Writes",
    "fleet",
    "plot",
    "read_trace",
    "simulate",
    "sweep",
    "test_scheme",
    "trace_info",
]
__version__ = version("floatgate")
