"""What Floatgate raises: one family, with the messages of the command."""


class FloatgateError(Exception):
    """Everything that Floatgate raises, but for what Python itself does (``KeyboardInterrupt``, ``TypeError``)."""


class InputError(FloatgateError, ValueError):
    """Settings, a trace or a file is wrong: the message points at what, as the command does with exit code 2."""


class BugError(FloatgateError):
    """A bug in Floatgate or in a scheme: please report it. The command ends with exit code 3."""
