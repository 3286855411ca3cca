"""The GPUs as the driver shows them: contexts made current per thread, attributes, names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tritensor.cuda.driver.calls import Driver
from tritensor.cuda.runtime.interface import Properties
from tritensor.ground.errors import DeviceError
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here


class Devices:
    """The GPUs of this process. A GPU's primary context is kept from its first use on, the one that other libraries use too."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.count = int(driver.call("cuDeviceGetCount"))
        self._contexts: dict[int, Any] = {}
        self._properties: dict[int, Properties] = {}
        self._lock = locks.lock()

    def handle(self, index: int) -> Any:
        """The driver's handle of a GPU. Raises DeviceError when there is none of that number."""
        if not 0 <= index < self.count:
            names = ", ".join(f"cuda:{i}" for i in range(self.count)) or "none"
            raise DeviceError(f"cuda:{index}: no such device; this machine has {self.count} ({names})")
        return self.driver.call("cuDeviceGet", index)

    def enter(self, index: int) -> None:
        """Make a GPU's context current on this thread."""
        if here.context == index:
            return
        context = self.context(index)
        # before the call: should it fail, nothing may go on with the place of another GPU
        here.place = None
        self.driver.call("cuCtxSetCurrent", context)
        here.context = index

    @contextmanager
    def visiting(self) -> Iterator[None]:
        """A stretch that may enter any GPU and leaves this thread on the one it was on. For finalizers: the collector runs them
        anywhere, also between another call's entering its GPU and what it does there."""
        before = here.context
        try:
            yield
        finally:
            if before >= 0:
                self.enter(before)

    def context(self, index: int) -> Any:
        """A GPU's primary context."""
        context = self._contexts.get(index)
        if context is None:
            handle = self.handle(index)
            with self._lock:
                context = self._contexts.get(index)
                if context is None:
                    context = self._contexts[index] = self.driver.call("cuDevicePrimaryCtxRetain", handle)
        return context

    def attribute(self, name: str, index: int) -> int:
        """An attribute by the driver's name without CU_DEVICE_ATTRIBUTE_."""
        attribute = getattr(self.driver.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.driver.call("cuDeviceGetAttribute", attribute, self.handle(index)))

    def properties(self, index: int) -> Properties:
        """What a GPU is; asked of the driver once."""
        found = self._properties.get(index)
        if found is None:
            handle = self.handle(index)
            name = self.driver.call("cuDeviceGetName", 256, handle)

            def ask(attribute: str) -> int:
                return self.attribute(attribute, index)

            found = self._properties[index] = Properties(
                name=name.split(b"\0")[0].decode(),
                capability=(ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR")),
                total_memory=int(self.driver.call("cuDeviceTotalMem", handle)),
                multi_processor_count=ask("MULTIPROCESSOR_COUNT"),
                shared_memory_per_block_optin=ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
                max_threads_per_multi_processor=ask("MAX_THREADS_PER_MULTIPROCESSOR"),
                warp_size=ask("WARP_SIZE"),
                l2_cache_size=ask("L2_CACHE_SIZE"),
                clock_rate_khz=ask("CLOCK_RATE"),
                memory_clock_rate_khz=ask("MEMORY_CLOCK_RATE"),
                memory_bus_width=ask("GLOBAL_MEMORY_BUS_WIDTH"),
                driver_version=int(self.driver.call("cuDriverGetVersion")),
            )
        return found
