"""The one exception that a user can cause and can mend."""

import errno

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class UserError(ValueError):
    """Bad configuration, data or checkpoint: the command line prints it without a traceback.

    The message is one sentence: where, what is wrong with the value received, what to do.
    """


class RunError(RuntimeError):
    """A run that started well had to stop: the command line prints it and exits with 1."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory is short, of the computer or of a GPU."""
    is_torchs = isinstance(error, RuntimeError) and (
        type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator" in str(error)
    )
    return isinstance(error, MemoryError) or is_torchs


def full_disk(error: BaseException) -> str | None:
    """Say that a file found no room, and what to do; None where that is not the trouble."""
    if not isinstance(error, OSError):
        return None
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in NO_SPACE:
        return f"{where}no space is left on the disk: free some and start again"
    if error.errno == errno.EFBIG:
        return f"{where}a file gets larger than this disk or `ulimit -f` allows: write elsewhere"
    return None
