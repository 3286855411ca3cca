"""Choice of the runtime of device `cuda`: the CUDA driver, or host memory and Triton's interpreter under TRITON_INTERPRET=1."""

from __future__ import annotations

from tritensor.cuda.runtime import active
from tritensor.cuda.runtime.interface import Runtime


def choose() -> Runtime:
    """A new runtime. Raises DeviceError when there is no driver or GPU."""
    if active.emulated():
        # here: each of the two loads what a process with the other has no use for, Triton's interpreter or cuda-python
        from tritensor.cuda.emulator.runtime import EmulatedRuntime

        return EmulatedRuntime()
    from tritensor.cuda.driver.runtime import DriverRuntime

    return DriverRuntime()


active.choose_by(choose)
