"""The owner of an op: the file and line that called `op(...)`, and the package whose entry point had it run."""

from __future__ import annotations

import sys
from typing import NamedTuple

from tritensor.ground.call_site import INSIDE, file_and_line

# What registers in somebody's name: this folder, and the makers of whole ops.
_MAKERS = (f"{INSIDE}ops/table/", f"{INSIDE}kernels/parts/")


class Owner(NamedTuple):
    """The place where an op was registered. `package` is the installed package whose entry point was being read, "" for none."""

    file: str
    line: int
    module: str
    package: str

    def __str__(self) -> str:
        place = file_and_line(self.file, self.line) if self.file else self.module
        if self.module.startswith("tritensor."):
            return f"tritensor itself ({place})"
        return place + (f" (package {self.package!r}, by its entry point)" if self.package else "")


def owner_of_caller(package: str) -> Owner:
    """The innermost frame outside of what registers in others' names."""
    # the stack, since authors give no name: messages about two ops of one name must tell whose they are
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_MAKERS) and frame.f_back is not None:
        frame = frame.f_back
    return Owner(frame.f_code.co_filename, frame.f_lineno, str(frame.f_globals.get("__name__", "")), package)


def owner_in_library(module: str) -> Owner:
    """Of an op that the index names and nobody has loaded: its file alone."""
    return Owner("", 0, module, "")
