"""A report as a picture: how near each row comes to the roofline, ours and the peers', and its times with their spread."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench.reports.page import page, rows_in_order
from bench.reports.report import device_of

MOST_ROWS = 60  # in a picture; the page has them all
_OURS, _TORCH, _COMPILED = "#0072b2", "#d55e00", "#009e73"  # told apart by colour-blind readers too (Okabe and Ito 2008)


def drawing(who: str) -> Any:
    """matplotlib, drawing into files. Ends the process with exit code 2 and a line where it is not installed."""
    try:
        import matplotlib
    except ImportError as error:
        print(f"{who}: matplotlib is not installed; pip install matplotlib, or leave the picture out", file=sys.stderr)
        raise SystemExit(2) from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def written(content: dict[str, Any], report: Path) -> list[str]:
    """Write the page and the picture beside a report; a line on each."""
    text, image = report.with_suffix(".md"), report.with_suffix(".png")
    text.write_text(page(content))
    if not rows_in_order(content):
        return [f"page: {text}", "no picture: no row was timed"]
    left_out = draw(content, image)
    return [f"page: {text}", f"picture: {image}" + (f", without {left_out} rows that lose least (all are on the page)" if left_out else "")]


def draw(content: dict[str, Any], to: Path) -> int:
    """Draw the rows of a report; how many were left out, for there are too many: those stay that lose most time to a peer, or take longest."""
    plt = drawing("bench")
    rows = rows_in_order(content)
    kept = sorted(rows, key=lambda r: (-r.get("lost_ms", 0.0), -r["ms"]))[:MOST_ROWS]
    shown = [r for r in rows if r in kept]
    places = list(range(len(shown)))[::-1]
    figure, (share, time) = plt.subplots(1, 2, figsize=(15, 1.8 + 0.42 * len(shown)), sharey=True, layout="constrained")
    share.barh(places, [r.get("roof", 0.0) for r in shown], color=_OURS, label="tritensor", height=0.6)
    for field, label, color, mark in (("torch_ms", "torch", _TORCH, "o"), ("compile_ms", "torch.compile", _COMPILED, "D")):
        seen = [(r.get("roof", 0.0) * r["ms"] / r[field], y) for r, y in zip(shown, places, strict=True) if r.get(field)]
        if seen:
            share.plot(*zip(*seen, strict=True), mark, color=color, label=label)
    share.axvline(1.0, color="black", linewidth=0.8)
    labels = [f"{r['op']} {r['corner']} {r['dtype']}\n{(r.get('model') or r['shape'])[:60]}" for r in shown]
    share.set(
        yticks=places,
        yticklabels=labels,
        xlim=(0, None),
        ylim=(-0.7, len(shown) - 0.3),
        xlabel="share of the roofline measured in the same run",
    )
    ways = ("ms", "spread", "GPU (graph)", _OURS, "o"), ("eager_ms", "eager_spread", "one after another", "gray", "x")
    for field, spread, label, color, mark in ways:
        times = [(r[field], r[field] * r.get(spread, 0.0) / 2, y) for r, y in zip(shown, places, strict=True) if r.get(field)]
        if times:
            x, error, y = zip(*times, strict=True)
            time.errorbar(x, y, xerr=error, fmt=mark, color=color, label=label, capsize=3)
    time.set(xscale="log", xlabel="ms, median and quartiles")
    share.tick_params(axis="y", labelsize=8)
    for axes in (share, time):
        axes.grid(axis="x", alpha=0.3)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    figure.suptitle(f"{device_of(content)}, {content['date'][:10]}")
    figure.savefig(to, dpi=110)
    plt.close(figure)
    return len(rows) - len(shown)
