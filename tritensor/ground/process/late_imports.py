"""Late imports, made at first use: one error where the process has no descriptor left to open a file with."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from tritensor.ground.errors import OutOfDescriptorsError, OutOfMemoryError

_NO_MEMORY = ": no memory is left to load it; free some, and call it again"
_NONE_LEFT = (errno.EMFILE, errno.ENFILE)


def is_out_of_descriptors(error: OSError) -> bool:
    """Whether the process, or the machine, has no descriptor left."""
    return error.errno in _NONE_LEFT


def out_of_descriptors_error(who: str, error: OSError) -> OutOfDescriptorsError:
    """What to raise for such an error."""
    whose = "this process" if error.errno == errno.EMFILE else "the machine"
    return OutOfDescriptorsError(
        error.errno,
        f"{who}: {whose} has no file descriptor left, and the first use of a function reads its file; close files, or allow more (ulimit -n), and call "
        "it again",
    )


@contextlib.contextmanager
def loading(who: str) -> Iterator[None]:
    """Around what reads files at the first use of something. Raises OutOfDescriptorsError, or OutOfMemoryError, in place of what the import raises, by the
    name of who asked first; what was begun is forgotten, and the next use begins anew."""
    try:
        yield
    except OSError as error:
        if not is_out_of_descriptors(error):
            raise
        raise out_of_descriptors_error(who, error) from (error.__cause__ or error)
    except MemoryError as error:
        if isinstance(error, OutOfMemoryError) and not str(error).endswith(_NO_MEMORY):
            raise  # of a device, or of shared memory, with its own words
        # not MemoryError: users catch one class for memory of any kind
        raise OutOfMemoryError(who + _NO_MEMORY) from (error.__cause__ or error)
