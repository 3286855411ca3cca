"""The model of many ranks as a picture: efficiency over the number of ranks, with what was measured and what is assumed."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.reports.pictures import drawing

_COLORS = ("#0072b2", "#d55e00")  # told apart by colour-blind readers too (Okabe and Ito 2008)

WIDTH = 145  # characters of a line below the picture
LINE = 0.155  # inches from one to the next


class Curve(NamedTuple):
    """Efficiency over ranks: the least (nothing is hidden) and the most (all that backward can hide)."""

    label: str
    ranks: Sequence[int]
    least: Sequence[float]
    most: Sequence[float]


def draw(curves: Sequence[Curve], measured: Sequence[tuple[int, float]], title: str, notes: Sequence[str], to: Path) -> None:
    """Write the picture; `measured` are (ranks, efficiency), `notes` stand below it, each in lines of its own."""
    below = [line for note in notes for line in textwrap.wrap(note, WIDTH)]
    plt = drawing("bench distributed --plot")
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "scaling", "font.family": "sans-serif", "font.size": 11}):
        figure, axes = plt.subplots(figsize=(9.5, 4.5 + LINE * len(below)))
        for curve, color in zip(curves, _COLORS, strict=False):
            axes.fill_between(curve.ranks, curve.least, curve.most, color=color, alpha=0.2, linewidth=0)
            axes.plot(curve.ranks, curve.most, color=color, label=f"{curve.label}: backward hides what it can")
            axes.plot(curve.ranks, curve.least, "--", color=color, label=f"{curve.label}: nothing is hidden")
        axes.plot(*zip(*measured, strict=True), "o", color="black", label="measured")
        ticks = curves[0].ranks
        axes.set_xscale("log", base=2)
        axes.set(xlabel="ranks", ylabel="efficiency, weak scaling", ylim=(0, 1.05), xticks=ticks, xticklabels=[f"{n:,}" for n in ticks])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.0f} %")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, loc="lower left", fontsize=9)
        axes.set_title(title, fontsize=12)
        figure.subplots_adjust(left=0.09, right=0.98, top=0.93, bottom=(LINE * len(below) + 0.7) / figure.get_figheight())
        figure.text(0.02, 0.02, "\n".join(below), fontsize=8.5, color="#444444", va="bottom")
        figure.savefig(to, metadata={"Date": None} if to.suffix == ".svg" else None, dpi=110)
        plt.close(figure)
