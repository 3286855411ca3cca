"""tritensor on the CPU behind the door through which `bench gpu` knows a library, so that the same rows can be asked of it."""

from __future__ import annotations

from bench.gpu.clock import HostClock


class OnCpu(HostClock):
    """tritensor on device cpu: no streams, no graphs, numpy's and the compiled loops' own time."""

    name = "tritensor"

    def __init__(self) -> None:
        import tritensor as tt

        self.t = tt
        self.device = tt.device("cpu")
