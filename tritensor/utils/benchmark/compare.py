"""Compare: a table of measurements, a row for each sub-label, a column for each description."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable

from tritensor.utils.benchmark.measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

_BEST, _GOOD, _BAD, _VERY_BAD, _BOLD, _END = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m", "\033[1m", "\033[0m"


class Colorize(enum.Enum):
    """The times that colours compare: none, those of a column, those of a row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Measurements side by side: `Compare(results).print()`. Those with the same labels are merged; each `label` has a table of its own."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = self._warn = False
        self._colorize = Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements. Raises TypeError for anything else."""
        for r in results:
            if not isinstance(r, Measurement):
                raise TypeError(
                    f"Compare: expected an instance of `Measurement`, got {type(r).__name__} instead; give what a Timer returned"
                )
            self._results.append(r)

    def trim_significant_figures(self) -> None:
        """Show no more digits than mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the best and the worst of each column, or of each row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Show beside a time how far those of its middle half are spread, where that is much."""
        self._warn = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique([m.task_spec.label for m in merged])
        return "\n".join([self._format_table(label, [m for m in merged if m.task_spec.label == label]) for label in labels])

    def _format_table(self, label: str | None, found: list[Measurement]) -> str:
        unit, scale = select_unit(min([m.median for m in found]))
        columns = ordered_unique([m.task_spec.description for m in found])
        envs = ordered_unique([m.task_spec.env for m in found])
        rows = ordered_unique([(m.task_spec.num_threads, m.task_spec.env, m.as_row_name) for m in found])
        rows.sort(key=lambda r: r[0])
        cells = {(m.task_spec.num_threads, m.task_spec.env, m.as_row_name, m.task_spec.description): m for m in found}
        # PyTorch's table, to the letter
        names = [f"      {name}" + (f" ({env or 'Unspecified env'})" if len(envs) > 1 else "") for _, env, name in rows]
        digits = [self._count_decimals([m for k, m in cells.items() if k[3] == c], scale) for c in columns]
        texts = [[self._format_cell(cells.get((*r, c)), scale, d) for c, d in zip(columns, digits, strict=True)] for r in rows]
        wide = [max([len(c or ""), *[len(t[i]) for t in texts]]) for i, c in enumerate(columns)]
        first = max(len(n) for n in names)
        total = first + sum(w + 5 for w in wide)
        lines = [
            f" {label or ''} ".center(total - 2, "-").join("[]"),
            "  |  ".join([" " * first, *[(c or "").center(w) for c, w in zip(columns, wide, strict=True)]]).rstrip(),
        ]
        threads = 0
        for i, r in enumerate(rows):
            if r[0] != threads:
                threads = r[0]
                lines.append(f"{threads} threads: ".ljust(total, "-"))
            shown = [self._colour_cell(t.rjust(w), cells, r, c, rows, columns) for t, w, c in zip(texts[i], wide, columns, strict=True)]
            lines.append("  |  ".join([names[i].ljust(first), *shown]).rstrip())
        return "\n".join([*lines, "", f"Times are in {unit_to_english(unit)}s ({unit}).", ""])

    def _count_decimals(self, column: list[Measurement], scale: float) -> int:
        """The digits behind the point that a column shows: one; trimmed, as many as mean something in all of its times."""
        if not self._trim:
            return 1
        return min([max(m.significant_figures - math.ceil(math.log10(m.median / scale)), 0) for m in column])

    def _format_cell(self, m: Measurement | None, scale: float, decimals: int) -> str:
        if m is None:
            return ""
        value = m.median / scale
        text = f"{trim_sigfig(value, m.significant_figures) if self._trim else value:.{decimals}f}"
        return text + (f" (! {100 * m.iqr / m.median:.0f}%)" if self._warn and m.has_warnings else "")

    def _colour_cell(self, text: str, cells: dict, row: tuple, column: str | None, rows: list, columns: list) -> str:  # type: ignore[type-arg]
        here = cells.get((*row, column))
        if self._colorize is Colorize.NONE or here is None:
            return text
        keys = [(*row, c) for c in columns] if self._colorize is Colorize.ROWWISE else [(*r, column) for r in rows]
        best = min([cells[k].median for k in keys if k in cells])
        colour = _choose_colour(here.median / best)
        return f"{colour}{text}{_END}" if colour else text


def _choose_colour(ratio: float) -> str:
    """The colour of a time, by its ratio to the best."""
    if ratio < 1.2:
        return (_BEST if ratio <= 1.0 else _GOOD) + _BOLD
    if ratio > 10:
        return _VERY_BAD + _BOLD
    return _BAD if ratio > 2 else ""
