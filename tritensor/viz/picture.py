"""Picture of a graph of labelled boxes: its DOT source, and the same as SVG, drawn without another program."""

from __future__ import annotations

import re
from pathlib import Path
from xml.sax.saxutils import escape

from tritensor.viz.layout import lay_out

# By kind of box: fill, and whether its corners are round.
KINDS = {
    "function": ("#e8e8e8", True), "leaf": ("#add8e6", False), "saved": ("#ffa500", False), "output": ("#caff70", False),
    "view": ("#a2cd5a", False),
}  # fmt: skip
LETTER, LINE, PAD = 6.7, 14.0, 7.0  # pixels: a letter's width in a font of 11, a line's height, the room around a label
MARGIN = 8.0
_UNWRITTEN = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # no character of XML 1.0


class Picture:
    """Boxes and edges. `source` is DOT; a notebook shows the SVG; `save("graph.svg")` and `save("graph.dot")` write either.

    Attributes:
        boxes: by number the lines of a label and the kind of a box.
    """

    def __init__(self) -> None:
        self.boxes: dict[int, tuple[list[str], str]] = {}
        self._edges: dict[tuple[int, int, bool], None] = {}

    def box(self, key: int, label: str, kind: str) -> None:
        """Add a box, `key` being any number that is its own."""
        # an attribute may be any text, and one such character makes the whole SVG unreadable
        self.boxes[key] = (_UNWRITTEN.sub(lambda c: repr(c[0])[1:-1], label).split("\n"), kind)

    def edge(self, start: int, end: int, dashed: bool = False) -> None:
        """Add an edge downwards."""
        self._edges[start, end, dashed] = None  # a dict: each edge once, in order

    @property
    def edges(self) -> list[tuple[int, int, bool]]:
        """(from, to, dashed), in the order in which they were added."""
        return list(self._edges)

    @property
    def source(self) -> str:
        """The graph in graphviz's language, DOT."""
        number = {key: i for i, key in enumerate(self.boxes)}
        lines = ["digraph {", '\tgraph [rankdir=TB]\n\tnode [shape=box style="filled" fontname=monospace fontsize=10]']
        for key, (label, kind) in self.boxes.items():
            text = "\\n".join(part.replace("\\", "\\\\").replace('"', '\\"') for part in label)
            fill, is_round = KINDS[kind]
            shape = ' style="filled,rounded"' if is_round else ""
            lines.append(f'\tn{number[key]} [label="{text}" fillcolor="{fill}"{shape}]')
        for a, b, dashed in self.edges:
            lines.append(f"\tn{number[a]} -> n{number[b]}" + (" [dir=none style=dashed]" if dashed else ""))
        return "\n".join([*lines, "}"]) + "\n"

    def svg(self) -> str:
        """The graph drawn: a whole SVG document. A leaf that is used far apart stands beside each use, dashed from the second time on."""
        keys = list(self.boxes)
        number = {key: i for i, key in enumerate(keys)}
        sizes = {}
        for i, key in enumerate(keys):
            label = self.boxes[key][0]
            sizes[i] = (max(max(len(part) for part in label) * LETTER, 20.0) + 2 * PAD, len(label) * LINE + 2 * PAD - 4)
        layout = lay_out(sizes, [(number[a], number[b]) for a, b, _ in self.edges])
        width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
            'font-family="monospace" font-size="11">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/><g transform="translate({MARGIN:g} {MARGIN:g})">',
        ]
        for a, b, dashed in self.edges:
            end = ' stroke-dasharray="4 3"' if dashed else ' marker-end="url(#tip)"'
            out.append(f'<path d="{_curve_path(layout.routes[number[a], number[b]])}" fill="none" stroke="#444"{end}/>')
        for i, key in enumerate(keys):
            out.append(_draw_box(*self.boxes[key], layout.at[i], sizes[i]))
            out += [_draw_box(*self.boxes[key], at, sizes[i], again=True) for at in layout.copies.get(i, ())]
        return "\n".join([*out, "</g></svg>"]) + "\n"

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return self.source

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file: .svg, or DOT to .dot and .gv; returns the path. Raises ValueError for another ending."""
        path = Path(path)
        if path.suffix not in (".svg", ".dot", ".gv"):
            raise ValueError(f"save: {path.name!r}; a picture is written as .svg, .dot or .gv (graphviz makes other kinds of .dot)")
        path.write_text(self.svg() if path.suffix == ".svg" else self.source, encoding="utf-8")  # which a picture without a declaration is
        return path

    def render(self, filename: str | Path = "graph", format: str = "svg", cleanup: bool = True, view: bool = False) -> str:
        """Write `<filename>.<format>` as graphviz's objects do, "svg", "dot" or "gv"; returns its name. `cleanup` and `view` are accepted."""
        return str(self.save(f"{filename}.{format}"))


def _curve_path(points: list[tuple[float, float]]) -> str:
    """A smooth path through the points, leaving and arriving straight."""
    (x, y), *rest = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for nx, ny in rest:
        bend = (ny - y) / 2
        parts.append(f"C{x:.1f} {y + bend:.1f} {nx:.1f} {ny - bend:.1f} {nx:.1f} {ny:.1f}")
        x, y = nx, ny
    return " ".join(parts)


def _draw_box(label: list[str], kind: str, at: tuple[float, float], size: tuple[float, float], again: bool = False) -> str:
    (x, y), (width, height) = at, size
    fill, is_round = KINDS[kind]
    corner = (' rx="6"' if is_round else "") + (' stroke-dasharray="3 2"' if again else "")
    box = f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}"{corner} fill="{fill}" stroke="#444"/>'
    first = y - (len(label) - 1) * LINE / 2 + 4
    lines = [f'<text x="{x:.1f}" y="{first + i * LINE:.1f}" text-anchor="middle">{escape(part)}</text>' for i, part in enumerate(label)]
    return box + "".join(lines)
