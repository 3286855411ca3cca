"""Devices on which ops and kernels are checked: the CPU, the emulated device, a GPU; and how device cuda is emulated where there is no GPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from tritensor.cuda import availability
from tritensor.cuda.runtime import active
from tritensor.ground.device import cpu, device
from tritensor.ground.errors import DeviceError

NAMES = ("cpu", "emulated", "gpu")


def emulate_without_gpu() -> None:
    """Where this machine has no GPU, let device cuda be emulated: set TRITON_INTERPRET=1, unless the variable is set already.

    Triton reads it when a kernel is defined, so this comes before any file of kernels is imported. Raises DeviceError where it comes too late.
    """
    if "TRITON_INTERPRET" in os.environ or availability.found().gpus:
        return
    if "triton.language" in sys.modules:  # its own kernels (tl.sum, tl.cdiv) are defined by now, and those of whoever imported it
        raise DeviceError(
            "testing: there is no GPU, and kernels were imported before device cuda could be emulated; set TRITON_INTERPRET=1, or import them later"
        )
    os.environ["TRITON_INTERPRET"] = "1"


def here() -> str:
    """What device cuda is in this process: "emulated" or "gpu". Raises DeviceError where it is neither."""
    if active.emulated():
        return "emulated"
    if not availability.gpus():
        raise DeviceError(
            "testing: there is no GPU, and device cuda is not emulated; set TRITON_INTERPRET=1 before kernels are imported (`python -m tritensor.testing` "
            "and the pytest plug-in do), or ask devices=['cpu'] alone"
        )
    return "gpu"


def places(asked: Iterable[str] | str | None = None) -> dict[str, device]:
    """The devices to ask on by what they are called: "cpu", and "emulated" or "gpu". `asked`: names of these, or "cuda" for whichever it is; None: both.

    Raises DeviceError for a name that is none, or is not to be had here.
    """
    # A str is an Iterable of its letters.
    names = [asked] if isinstance(asked, str) else list(asked) if asked is not None else ["cpu", "cuda"]
    found: dict[str, device] = {}
    for name in names:
        if name not in (*NAMES, "cuda"):
            raise DeviceError(f"testing: device {name!r} is none of {', '.join(NAMES)} and cuda")
        if name == "cpu":
            found["cpu"] = cpu
            continue
        there = here()
        if name not in ("cuda", there):
            how = "unset TRITON_INTERPRET, which emulates it" if there == "emulated" else "set TRITON_INTERPRET=1 to emulate it"
            raise DeviceError(f"testing: device {name!r} is not to be had: device cuda is the {there} one here; {how}")
        found[there] = device("cuda", 0)  # "cuda" and "gpu" asked together are one
    return found
