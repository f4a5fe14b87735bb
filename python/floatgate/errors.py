"""What Floatgate raises: one family, with the messages of the command."""


class FloatgateError(Exception):
    """Everything that Floatgate raises, but for what Python itself does (``KeyboardInterrupt``, ``TypeError``)."""


class InputError(FloatgateError, ValueError):
    """Settings, a trace or a file is wrong: the message points at what, as the command does with exit code 2."""


class PolicyError(FloatgateError):
    """A policy or a scheme written in Python has gone wrong: the message names the class, the method and what it returned. What
    it raised is the cause (``__cause__``), with its own traceback."""


class Refused(FloatgateError):
    """Raised by a scheme in Python: this device cannot be made, or the flash holds what no power cut leaves."""


class FlashFailed(FloatgateError):
    """Raised to a scheme in Python: the flash has failed, or its power is gone. Nothing more can be done with it."""


class TestFailed(FloatgateError, AssertionError):
    """A scheme in Python has not passed :func:`floatgate.test_scheme`. The message has a line to replay the case; what the scheme
    raised is the cause."""

    __test__ = False


class BugError(FloatgateError):
    """A bug in Floatgate or in a scheme: please report it. The command ends with exit code 3."""
