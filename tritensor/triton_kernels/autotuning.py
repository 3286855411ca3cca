"""`@triton.autotune` on our tensors: configs that a GPU cannot run are left out and named if none is left; emulated, the first that runs is taken.

Pruning, the key, `restore_value`, `reset_to_zero`, the cache on disk and printing are Triton's own; the timer is its do_bench over our
events (see driver.py). A device that only records (`tritensor precompile --script`) launches every config, and keeps no choice on the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.cuda.runtime import active
from tritensor.ground.errors import DeviceError, LaunchError

_NEVER = float("inf")


class _Search:
    """One search: the arguments that it is made for, whether a config was found that runs, and why others do not."""

    def __init__(self, arguments: Any) -> None:
        self.arguments = arguments
        self.found = False
        self.taken: Any = None  # the last config that was found to run
        self.refused: list[str] = []


def _search_of(tuner: Any) -> _Search:
    """The search that a tuner is in. Triton makes `nargs` anew for each call of the kernel."""
    found: _Search | None = tuner.__dict__.get("_tritensor_search")
    if found is None or found.arguments is not tuner.nargs:
        found = tuner._tritensor_search = _Search(tuner.nargs)
    return found


def _wrap_bench(bench: Callable[..., Any]) -> Callable[..., Any]:
    """Autotuner._bench: the times of a config, three quantiles in ms, infinity for one that cannot run."""

    def measured(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        search = _search_of(self)
        emulated = active.emulated()
        if emulated and search.found:  # a config may stand in the list twice
            return [0.0 if config == search.taken else _NEVER] * 3
        before = self.__dict__.get("do_bench", self)
        if emulated:
            self.do_bench = _run_once
        try:
            times = bench(self, *args, config=config, **meta)
        except LaunchError as error:
            # a race or a wild address is wrong in every config: the search must not hide it
            if _is_fault(error):
                raise
            search.refused.append(f"{config}: {str(error).splitlines()[0]}")
            return [_NEVER] * 3
        finally:
            if emulated:
                if before is self:
                    del self.do_bench
                else:
                    self.do_bench = before
        if times[0] == _NEVER:  # Triton knew the error, and printed it if it was asked to
            search.refused.append(f"{config}: it needs more than the GPU has, or does not compile (TRITON_PRINT_AUTOTUNING=1 says more)")
        else:
            search.found, search.taken = True, config
        return times

    return measured


class _NotMeasuredError(Exception):
    """Ends a search on a device that only records, before its times, which mean nothing, are kept for a GPU of that kind."""


def _wrap_disk_cache(check: Callable[..., bool]) -> Callable[..., bool]:
    """Autotuner.check_disk_cache: a choice that is on the disk is taken on every device; only what was measured is put there."""

    def kept(self: Any, key: Any, configs: Any, search: Callable[[], None]) -> bool:
        from tritensor.cuda.virtual.recording_runtime import RecordingRuntime

        # a choice made without times must not be kept for the GPU that it is compiled for
        if not isinstance(active.runtime(), RecordingRuntime):
            return check(self, key, configs, search)

        def searched() -> None:
            search()
            raise _NotMeasuredError

        try:
            return check(self, key, configs, searched)
        except _NotMeasuredError:
            return False

    return kept


def _is_fault(error: LaunchError) -> bool:
    """Whether an error shows a fault of the kernel, which no other config mends."""
    return type(error).__name__ == "SanitizerError"


def _run_once(call: Callable[[], None], quantiles: Any = None, **_: Any) -> list[float]:
    """In place of a timer on the emulated device, where times mean nothing: that it runs is all there is to learn."""
    call()
    return [0.0, 0.0, 0.0]


def _wrap_run(run: Callable[..., Any]) -> Callable[..., Any]:
    """Autotuner.run, which says so when no config can run."""

    def launched(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return run(self, *args, **kwargs)
        except TypeError as error:
            given = sorted({name for config in self.configs for name in config.all_kwargs()} & kwargs.keys())
            if not given or "multiple values" not in str(error):
                raise
            raise TypeError(
                f"autotune {self.base_fn.__name__}: {', '.join(given)} is chosen by the configs and is given in the call as well; leave it out of one of them"
            ) from error
        except (LaunchError, DeviceError) as error:
            search: _Search | None = self.__dict__.get("_tritensor_search")
            if search is None or search.found or not search.refused or search.arguments is not self.nargs:
                raise
            why = "".join(f"\n- {line}" for line in search.refused)
            raise LaunchError(
                f"autotune {self.base_fn.__name__}: none of its {len(search.refused)} configs runs here; add one that needs less:{why}"
            ) from error

    return launched


def install() -> None:
    """Called once, when Triton has been imported."""
    from triton.runtime.autotuner import Autotuner

    Autotuner._bench = _wrap_bench(Autotuner._bench)
    Autotuner.check_disk_cache = _wrap_disk_cache(Autotuner.check_disk_cache)
    Autotuner.run = _wrap_run(Autotuner.run)
