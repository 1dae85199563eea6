"""The one exception that a user can cause and can mend."""


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
