"""Every error that the reference stack raises on purpose.

A `StackError` is the user's to cure (a wrong file, label, option or disk), so its text is one
plain line and a command line prints it without a traceback. Anything else is a fault of the code.
"""


class StackError(Exception):
    """What went wrong, where, and what to do, in one line."""


class LauncherError(StackError):
    """The process was started in a way that contradicts what it was asked to do."""


class ConfigError(StackError):
    """An option has a value that it cannot have."""


class DataError(StackError):
    """The data, or a file of it, cannot be used."""


class CheckpointError(StackError):
    """A checkpoint, a result file or its folder cannot be written or read."""


class TrainingError(StackError):
    """The training cannot go on: its loss is not a number any more."""


class StoppedError(StackError):
    """The training was asked to end, by SIGTERM, and has saved where it stands."""


class MissingExtraError(StackError):
    """An optional dependency is not installed."""


class RankFailedError(RuntimeError):
    """A rank failed in a way that its user cannot cure: read that rank's own traceback."""
