"""The one exception that a user can cause and can mend."""


class UserError(ValueError):
    """Bad configuration, data or checkpoint: the command line prints it without a traceback.

    The message is one sentence: where, what is wrong with the value received, what to do.
    """


class RunError(RuntimeError):
    """A run that started well had to stop: the command line prints it and exits with 1."""
