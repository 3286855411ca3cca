"""A report as a page of Markdown: every row with its network, medians and spread, share of the roofline, ratios to the peers, configs."""

from __future__ import annotations

from typing import Any

from bench.gpu.configs import in_words
from bench.reports.report import cell, device_of, summary, with_ratios

COLUMNS = (
    "op", "type", "input", "network", "ms", "ms, eager", "host us", "GB/s", "TFLOP/s", "of the roofline", "to torch", "to torch.compile", "configs",
)  # fmt: skip


def rows_in_order(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The timed rows with their ratios: op by op, forward before backward, small before large."""
    rows = [with_ratios(r) for r in content["rows"].values() if "ms" in r]
    return sorted(rows, key=lambda r: (r["op"], r["corner"] != "forward", r["dtype"], r["bytes"]))


def page(content: dict[str, Any]) -> str:
    """The page. A time is a median, +- half the distance of its quartiles."""
    out = [f"# {device_of(content)}, {content['date'][:10]}", "", summary(content), ""]
    out += [
        "Times are medians, +- half the distance of the quartiles. `ms`: the GPU alone, replayed from a CUDA graph; `ms, eager`: called one after another; "
        f"`host us`: what a call costs the host. {content['cache'][0].upper()}{content['cache'][1:]}; rows that are not cold are marked *.",
        "", f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}",
    ]  # fmt: skip
    out += [f"| {' | '.join(_cells(r))} |" for r in rows_in_order(content)]
    for part, title in (("failed", "Failed"), ("peer_failed", "Failed in torch"), ("not_timed", "Not timed")):
        if content.get(part):
            out += ["", f"{title}:", "", *(f"- `{key}`: {str(why).splitlines()[0]}" for key, why in content[part].items())]
    return "\n".join(out) + "\n"


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        f"{row['op']} {row['corner']}", row["dtype"], row["shape"] + ("" if row.get("cold", True) else " *"), row.get("model", ""),
        _spread(row, "ms", "spread"), _spread(row, "eager_ms", "eager_spread"),
        *[cell(row.get(k), form, "") for k, form in (("host_us", ".1f"), ("gbs", ".0f"))], cell(row.get("tflops"), ".2f", "") if row["flops"] else "",
        *[cell(row.get(k), ".2f", "") for k in ("roof", "ratio_torch", "ratio_compile")], in_words(row.get("config", [])),
    ]  # fmt: skip


def _spread(row: dict[str, Any], field: str, spread: str) -> str:
    return f"{row[field]:.4f} +- {row[field] * row.get(spread, 0.0) / 2:.4f}" if row.get(field) is not None else ""
