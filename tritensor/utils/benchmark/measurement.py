"""Measurement: the times that a Timer took of one task, their spread, and the units and digits that they are shown with."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable
from typing import Any

import numpy as np

from tritensor.ground.call_site import qualified_name

_UNITS = {-3: "ns", -2: "us", -1: "ms"}
_WORDS = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
_NOISE = 25e-9  # seconds: a clock and a loop can be trusted to that at best
_DIGITS = 4  # at most
_NOTED, _WARNED = 0.1, 0.25  # shares of the median: an interquartile range above the first is noted, above the second warned of


def select_unit(t: float) -> tuple[str, float]:
    """(name, seconds) of the unit in which a time of t seconds reads best: ("us", 1e-06)."""
    power = math.floor(math.log10(t) / 3) if t > 0 else 0  # of a thousand
    unit = _UNITS.get(max(power, -3), "s")
    return unit, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def unit_to_english(u: str) -> str:
    """A unit's name as a word: microsecond for us."""
    return _WORDS[u]


def trim_sigfig(x: float, n: int) -> float:
    """x rounded to n significant digits."""
    if not x or not math.isfinite(x):  # these have no logarithm
        return float(x)
    scale = 10.0 ** (math.floor(math.log10(abs(x))) + 1 - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements, each once, in the order in which they come."""
    return list(dict.fromkeys(elements))


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """A task to be timed. `label`, `sub_label`, `description` and `env` name the table, the row, the column and the environment that Compare sorts by."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label with the sub-label, or the statement where it has none."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else f"stmt:{f'  ({self.sub_label})' if self.sub_label else ''}\n{self.stmt}"

    def setup_str(self) -> str:
        """The set-up as a report shows it; nothing where there is none."""
        if not self.setup or self.setup == "pass":  # the default set-up says nothing
            return ""
        return f"setup:\n{self.setup}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description, environment and set-up, a line each."""
        return "\n".join([s for s in (self.title, self.description or "", f"env: {self.env}" if self.env else "", self.setup_str()) if s])


class Measurement:
    """Times of one task. Those of several with the same labels can be merged.

    Args:
        number_per_run: how often the statement ran in each of `raw_times`, which are seconds.
        task_spec: what was timed.
        metadata: anything to keep with it.
    """

    def __init__(self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec, metadata: dict[Any, Any] | None = None) -> None:
        self.number_per_run, self.raw_times, self.task_spec, self.metadata = number_per_run, list(raw_times), task_spec, metadata

    def __getattr__(self, name: str) -> Any:
        """An attribute of the task: stmt, label, num_threads, ..."""
        if name.startswith("_") or "task_spec" not in self.__dict__ or not hasattr(self.task_spec, name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds of one statement, in each run."""
        return [t / self.number_per_run for t in self.raw_times]

    def _require_times(self) -> list[float]:
        if not self.raw_times:
            raise ValueError(f"Measurement: {self.title}: there are no times; time something first")
        return self.times

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self._require_times())

    @property
    def mean(self) -> float:
        """Seconds."""
        return statistics.fmean(self._require_times())

    @property
    def iqr(self) -> float:
        """The distance of the quartiles, in seconds: the spread of the middle half of the times."""
        low, high = np.quantile(self._require_times(), [0.25, 0.75])
        return float(high - low)

    @property
    def significant_figures(self) -> int:
        """The digits of the median that mean something, 1 to 4: those above an interval of confidence, 1.645 standard errors of the middle half of the
        times (90 % where they spread as a normal distribution), and never less than 25 ns."""
        found = sorted(self._require_times())
        n = len(found)
        middle = found[n // 4 : math.ceil(3 * n / 4)] or found  # outliers are the machine's, not the statement's
        interval = max(1.645 * float(np.std(middle)) / math.sqrt(n), _NOISE)
        digits = math.floor(math.log10(self.median / interval)) if self.median > 0 else 1
        return min(max(digits, 1), _DIGITS)

    @property
    def has_warnings(self) -> bool:
        """Whether the times are spread so widely that the median is in doubt, or there are few."""
        return len(self.raw_times) > 1 and not self.meets_confidence()

    def meets_confidence(self, threshold: float = _NOTED) -> bool:
        """Whether the interquartile range is below that share of the median."""
        return self.iqr / self.median < threshold if self.median > 0 else False

    @property
    def title(self) -> str:
        """The task's title."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """The sub-label, or the statement where it has none."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def _object_repr(self) -> str:
        """Python's default repr, under PyTorch's path."""
        return f"<{qualified_name('utils.benchmark.utils.common.Measurement')} object at {id(self):#x}>"

    def __repr__(self) -> str:
        if not self.raw_times:
            return f"{self._object_repr()}\n{self.task_spec.summarize()}\n  (no times)"
        unit, scale = select_unit(self.median)
        threads = f"{self.task_spec.num_threads} thread{'s' * (self.task_spec.num_threads > 1)}"
        n = len(self.raw_times)
        lines = [self._object_repr(), self.task_spec.summarize()]
        if n == 1:  # no spread to tell of
            lines += [f"  {self.median / scale:.2f} {unit}", f"  1 measurement, {self.number_per_run} runs , {threads}"]
            return "\n".join(lines)
        low, high = np.quantile(self.times, [0.25, 0.75])
        lines.append(f"  Median: {self.median / scale:.2f} {unit}")
        if n > 3:  # quartiles of fewer are interpolated between too few times
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})")
        lines.append(f"  {n} measurements, {self.number_per_run} runs per measurement, {threads}")
        if self.has_warnings:
            lines.append(f"  WARNING: Interquartile range is {100 * self.iqr / self.median:.1f}% of the median measurement.")
            cause = (
                "could indicate system fluctuation" if self.meets_confidence(_WARNED) else "suggests significant environmental influence"
            )
            lines.append(f"           This {cause}.")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One for each task, with the times of all that measured it."""
        found: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            found.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, task) for task, times in found.items()]
