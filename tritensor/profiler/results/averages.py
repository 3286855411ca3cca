"""Class EventList: a profile's events, their sums by name (and shapes, and stack), tables and traces of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.ground.extras import extra
from tritensor.profiler.results.chrome_trace import write_trace
from tritensor.profiler.results.events import DeviceType
from tritensor.profiler.results.sums import FunctionEventAvg
from tritensor.profiler.results.table import format_html, format_text


class EventList(list[Any]):
    """Events (FunctionEvent) or their sums (FunctionEventAvg), as `events()` and `key_averages()` of a profile give them."""

    def __init__(self, events: Iterable[Any] = (), *, about: Any = None, totals: tuple[float, float] | None = None) -> None:
        """`about`: the profile's facts, for the table (see metadata.py); `totals`: microseconds of all on the host and on devices."""
        super().__init__(events)
        self.about, self.totals = about, totals

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of the host in all events."""
        return sum([e.self_cpu_time_total for e in self if e.device_type is DeviceType.CPU]) if self.totals is None else self.totals[0]

    @property
    def self_device_time_total(self) -> float:
        """Microseconds of devices, each piece of work once."""
        if self.totals is not None:
            return self.totals[1]
        return sum([e.self_device_time_total for e in self if e.device_type is not DeviceType.CPU])

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums by name; where asked, by the shapes of inputs and by so many frames of the stack as well. `group_by_overload_name` is accepted: an op here
        has one form."""
        if any(isinstance(e, FunctionEventAvg) for e in self):
            raise ArgumentError("key_averages: these are averages already; ask the events() of the profile")
        found: dict[Any, FunctionEventAvg] = {}
        for e in self:
            shapes = str(e.input_shapes) if group_by_input_shapes else ""
            stack = tuple(e.stack[:group_by_stack_n])
            # an op and a user's range may have the same name
            avg = found.setdefault((e.key, e.device_type, e.kind, shapes, stack), FunctionEventAvg())
            avg.add(e)
            avg.roof_time += _roof_time(e, self.about)
            if group_by_input_shapes:
                avg.input_shapes = e.input_shapes
            avg.stack = list(stack)
        return EventList(found.values(), about=self.about, totals=(self.self_cpu_time_total, self.self_device_time_total))

    def total_average(self) -> FunctionEventAvg:
        """The sums of all of them, under the name Total."""
        total = FunctionEventAvg()
        for e in self:
            total.add(e)
        total.key = "Total"
        return total

    def to_dicts(self) -> list[dict[str, Any]]:
        """The averages' figures, a dict each."""
        return [(e if isinstance(e, FunctionEventAvg) else FunctionEventAvg().add(e)).to_dict() for e in self]

    def to_pandas(self) -> Any:
        """The same as a pandas.DataFrame. Raises ModuleNotFoundError where pandas is not installed."""
        return extra("pandas", "to_pandas", "pandas", "pandas").DataFrame(self.to_dicts())

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55,
        max_shapes_column_width: int = 80, header: str | None = None, top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """The list as text, a row for each.

        Args:
            sort_by: a figure, the largest first: cpu_time_total, self_cpu_time_total, device_time_total (or cuda_...), self_device_time_total, cpu_time,
                device_time, cpu_memory_usage, self_cpu_memory_usage, device_memory_usage, self_device_memory_usage, count, flops, nbytes, roofline.
                None: as they come.
            row_limit: rows at most; -1: all.
            max_name_column_width, max_shapes_column_width, max_src_column_width: characters; longer ones are cut.
            header: a line above.
            top_level_events_only: only events that no other one encloses.
            time_unit: "s", "ms" or "us" for all times; None: each as it reads best.
        """
        widths = (max_name_column_width, max_shapes_column_width, max_src_column_width)
        return format_text(self, sort_by, row_limit, widths, header, top_level_events_only, time_unit)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace that chrome://tracing and ui.perfetto.dev show; a path that ends in .gz is compressed."""
        write_trace(path, self, self.about)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with a figure in whole microseconds, `outer;inner 12` a line, as flame graphs are drawn from. Wants with_stack=True.

        Raises ArgumentError for another metric than self_cpu_time_total and self_device_time_total (self_cuda_time_total).
        """
        if metric not in ("self_cpu_time_total", "self_device_time_total", "self_cuda_time_total"):
            raise ArgumentError(f"export_stacks: metric {metric!r}; give 'self_cpu_time_total' or 'self_device_time_total'")
        sums: dict[str, int] = {}
        for e in self:
            if e.stack and (took := int(getattr(e, metric))) > 0:
                line = ";".join([*[f.replace(";", ",").replace(" ", "_") for f in reversed(e.stack)], e.key.replace(" ", "_")])
                sums[line] = sums.get(line, 0) + took
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f"{line} {took}\n" for line, took in sums.items())

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return format_html(self)


def _roof_time(e: Any, about: Any) -> float:
    """The microseconds that a call takes at least at the peaks of its device; 0 where these were not asked for."""
    if about is None or not (e.flops or e.nbytes):
        return 0.0
    roof = about.roof(e)
    return 0.0 if roof is None else roof.least_seconds(e.flops, e.nbytes, e.dtype) * 1e6
