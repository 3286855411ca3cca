"""Table of a profile, as text and for notebooks: only the columns that are not empty."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from textwrap import wrap
from typing import Any, NamedTuple

from tritensor.ground.errors import ArgumentError
from tritensor.profiler.results.events import DeviceType
from tritensor.profiler.results.sums import FunctionEventAvg
from tritensor.profiler.results.units import UNITS, format_bytes, format_count, format_time

_NONE = "--"
_WIDE = 140  # characters that a row should fit in: longer names are cut down to _LEAST for it
_LEAST = 30
_SORTS = (
    "cpu_time_total", "self_cpu_time_total", "cpu_time", "device_time_total", "self_device_time_total", "device_time", "cpu_memory_usage",
    "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "count", "flops", "nbytes", "gbs", "tflops", "roofline",
)  # fmt: skip


class Column(NamedTuple):
    """A heading, and the text of a row's cell below it."""

    heading: str
    cell: Callable[[Any], str]
    left: bool = False


def _format_share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else _NONE


def _format_rate(value: float) -> str:
    return f"{value:.2f}" if value >= 0.01 else f"{value:.4f}" if value else _NONE


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 1)] + "..."


def _check_figure(sort_by: str) -> str:
    """The figure that a list is sorted by. Raises ArgumentError for a word that is none."""
    name = sort_by.replace("cuda_", "device_").replace("xpu_", "device_")
    if name not in _SORTS:
        raise ArgumentError(f"table: sort_by {sort_by!r} is no figure of a profile; give one of {', '.join(_SORTS)}")
    return name


_AVERAGES_ONLY = ("gbs", "tflops", "roofline")  # single events have none of these


def _choose_rows(events: Any, sort_by: str | None, row_limit: int, top_level_events_only: bool) -> list[Any]:
    found = [e for e in events if e.cpu_parent is None] if top_level_events_only else list(events)
    if sort_by is not None:
        name = _check_figure(sort_by)
        if name in _AVERAGES_ONLY:  # a single event has no such figure: it is made an average of itself
            found = [e if isinstance(e, FunctionEventAvg) else FunctionEventAvg().add(e) for e in found]
        found.sort(key=lambda e: -getattr(e, name))
    return found if row_limit < 0 else found[:row_limit]


def choose_columns(events: Any, widths: tuple[int, int, int], unit: str | None) -> list[Column]:
    """The columns that a list of events needs."""
    name, shapes, source = widths
    host, device = events.self_cpu_time_total, events.self_device_time_total
    when = lambda value: format_time(value, unit)  # noqa: E731
    of_host = lambda text: lambda e: text(e) if e.device_type is DeviceType.CPU else _NONE  # noqa: E731
    out = [
        Column("Name", lambda e: _shorten(e.key, name), left=True),
        Column("Self CPU %", of_host(lambda e: _format_share(e.self_cpu_time_total, host))),
        Column("Self CPU", of_host(lambda e: when(e.self_cpu_time_total))),
        Column("CPU total %", of_host(lambda e: _format_share(e.cpu_time_total, host))),
        Column("CPU total", of_host(lambda e: when(e.cpu_time_total))),
        Column("CPU time avg", of_host(lambda e: when(e.cpu_time))),
    ]
    if any(e.device_type is not DeviceType.CPU for e in events):
        out += [
            Column("Self CUDA", lambda e: when(e.self_device_time_total)),
            Column("Self CUDA %", lambda e: _format_share(e.self_device_time_total, device)),
            Column("CUDA total", lambda e: when(e.device_time_total)),
            Column("CUDA time avg", lambda e: when(e.device_time)),
        ]
    if any(e.cpu_memory_usage for e in events) or (events.about is not None and events.about.memory):
        out += [
            Column("CPU Mem", lambda e: format_bytes(e.cpu_memory_usage)),
            Column("Self CPU Mem", lambda e: format_bytes(e.self_cpu_memory_usage)),
        ]
    if any(e.device_memory_usage for e in events):
        out += [
            Column("CUDA Mem", lambda e: format_bytes(e.device_memory_usage)),
            Column("Self CUDA Mem", lambda e: format_bytes(e.self_device_memory_usage)),
        ]
    out.append(Column("# of Calls", lambda e: str(e.count)))
    if any(getattr(e, "input_shapes", None) for e in events):
        out.append(Column("Input Shapes", lambda e: _shorten(str(e.input_shapes or []), shapes), left=True))
    if any(e.flops or e.nbytes for e in events):
        out += _work_columns(events)
    if any(e.stack for e in events):
        out.append(Column("Source Location", lambda e: _shorten("; ".join(e.stack), source), left=True))
    return out


def _work_columns(events: Any) -> list[Column]:
    """Flops, bytes, and of averages the rates."""
    out = [
        Column("Total FLOPs", lambda e: format_count(e.flops) if e.flops else _NONE),
        Column("Bytes", lambda e: format_bytes(e.nbytes) if e.nbytes else _NONE),
    ]
    if all(isinstance(e, FunctionEventAvg) for e in events):
        out += [Column("GB/s", lambda e: _format_rate(e.gbs)), Column("TFLOP/s", lambda e: _format_rate(e.tflops))]
        if any(e.roof_time for e in events):
            out.append(Column("Roofline", lambda e: f"{100 * e.roofline:.1f}%" if e.roof_time else _NONE))
    return out


def _format_footer(events: Any, unit: str | None) -> list[str]:
    out = [f"Self CPU time total: {format_time(events.self_cpu_time_total, unit)}"]
    if events.self_device_time_total:
        out.append(f"Self CUDA time total: {format_time(events.self_device_time_total, unit)}")
    return out + ([] if events.about is None else events.about.remarks(events))


def format_text(
    events: Any, sort_by: str | None, row_limit: int, widths: tuple[int, int, int], header: str | None, top: bool, unit: str | None
) -> str:
    """The list as text; see EventList.table."""
    if unit is not None and unit not in UNITS:
        raise ArgumentError(f"table: time_unit {unit!r}; give 's', 'ms', 'us' or None")
    if not events:
        return "\n".join(["(no events)", *_format_footer(events, unit)])
    shown = choose_columns(events, widths, unit)
    rows = [[c.cell(e) for c in shown] for e in _choose_rows(events, sort_by, row_limit, top)]
    size = [max([len(r[i]) for r in rows] + [max([len(w) for w in c.heading.split()])]) for i, c in enumerate(shown)]
    parts = []
    for block in _split_columns(size):
        part, fits = [shown[i] for i in block], [size[i] for i in block]
        fits[0] = min(fits[0], max(_WIDE - sum(fits[1:]) - 2 * (len(block) - 1), _LEAST))  # names are cut before numbers are
        parts.append(_format_block(part, fits, [[_shorten(r[0], fits[0]), *[r[i] for i in block[1:]]] for r in rows]))
    width = max([len(line) for part in parts for line in part])
    above = [] if header is None else ["=" * width, header]
    return "\n".join([*above, "\n\n".join(["\n".join(part) for part in parts]), *_format_footer(events, unit), ""])


def _split_columns(size: list[int]) -> list[list[int]]:
    """Columns by number, in as many tables below one another as it takes for rows to fit; each begins with the name."""
    out, used = [[0]], min(size[0], _LEAST)
    for i, n in enumerate(size[1:], 1):
        if used + 2 + n > _WIDE and len(out[-1]) > 1:
            out.append([0])
            used = min(size[0], _LEAST)
        out[-1].append(i)
        used += 2 + n
    return out


def _format_block(shown: list[Column], size: list[int], rows: list[list[str]]) -> list[str]:
    """The lines of one table: headings, in several lines where they are wider than the cells below, and rows."""
    rule = "  ".join("-" * n for n in size)

    def line(cells: list[str]) -> str:
        return "  ".join([t.ljust(n) if c.left else t.rjust(n) for t, n, c in zip(cells, size, shown, strict=True)]).rstrip()

    heads = [wrap(c.heading, max(n, 1)) for c, n in zip(shown, size, strict=True)]
    tall = max([len(h) for h in heads])
    return [rule, *[line([([""] * (tall - len(h)) + h)[k] for h in heads]) for k in range(tall)], rule, *[line(r) for r in rows], rule]


def format_html(events: Any) -> str:
    """The list as a table for a notebook, the longest time first."""
    by = "self_device_time_total" if events.self_device_time_total else "self_cpu_time_total"
    shown = choose_columns(events, (80, 80, 80), None)
    head = "".join(f"<th>{escape(c.heading)}</th>" for c in shown)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:{"left" if c.left else "right"}">{escape(c.cell(e))}</td>' for c in shown) + "</tr>"
        for e in _choose_rows(events, by, 100, False)
    )
    foot = "<br>".join(escape(line) for line in _format_footer(events, None))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{foot}</p>"
