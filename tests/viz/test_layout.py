"""Pictures of real graphs: boxes lie apart, edges lead down and around boxes, a recurrent network stays narrow, ten thousand nodes take seconds."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.models import resnet18
from tritensor.viz import Picture, make_dot
from tritensor.viz.layout import lay_out

SVG = "{http://www.w3.org/2000/svg}"


def residual() -> Picture:
    model = resnet18()
    return make_dot(model(tt.randn(1, 3, 64, 64)), model)


def transformer() -> Picture:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return make_dot(layer(tt.randn(2, 5, 16)), layer, show_attrs=True, show_saved=True)


def twice() -> Picture:
    x = tt.randn(4, requires_grad=True)
    (g,) = tt.autograd.grad((x.exp() * x.sin()).sum(), x, create_graph=True)
    (h,) = tt.autograd.grad((g * g).sum(), x, create_graph=True)
    return make_dot([h.sum(), g], {"x": x})


def recurrent(steps: int = 200) -> Picture:
    cell, h = nn.RNNCell(4, 8), tt.zeros(1, 8)
    for _ in range(steps):
        h = cell(tt.randn(1, 4), h)
    return make_dot(h.sum(), cell)


def dense() -> Picture:
    """Every layer sees all before it."""
    seen = [tt.randn(2, 4, requires_grad=True)]
    for _ in range(12):
        seen.append(tt.cat(seen, 1).sum(1, keepdim=True).tanh())
    return make_dot(tt.cat(seen, 1), {"x": seen[0]})


GRAPHS: dict[str, Callable[[], Picture]] = {
    "residual": residual, "transformer": transformer, "twice": twice, "recurrent": recurrent, "dense": dense
}  # fmt: skip


def boxes(root: ET.Element) -> list[tuple[float, float, float, float]]:
    """(left, top, right, bottom)."""
    found = [[float(r.get(k, "nan")) for k in ("x", "y", "width", "height")] for r in root.iter(f"{SVG}rect") if r.get("stroke")]
    return [(x, y, x + w, y + h) for x, y, w, h in found]


@pytest.mark.parametrize("name", GRAPHS)
def test_boxes_lie_apart_and_inside(name: str) -> None:
    root = ET.fromstring(GRAPHS[name]().svg())
    found = sorted(boxes(root), key=lambda b: b[1])
    width, height = (float(root.get(k, "nan")) for k in ("width", "height"))
    for i, (left, top, right, bottom) in enumerate(found):
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        for other in found[i + 1 :]:
            if other[1] >= bottom:
                break
            assert other[0] >= right or other[2] <= left, "two boxes lie over one another"


@pytest.mark.parametrize("name", GRAPHS)
def test_edges_go_from_box_to_box_around_the_others(name: str) -> None:
    picture = GRAPHS[name]()
    number = {key: i for i, key in enumerate(picture.boxes)}
    sizes = {i: (60.0 + i % 7 * 10, 20.0 + i % 3 * 14) for i in range(len(number))}
    edges = [(number[a], number[b]) for a, b, _ in picture.edges]
    layout = lay_out(sizes, edges)
    assert set(layout.routes) == set(edges)
    places = [(n, at) for n, at in layout.at.items()] + [(n, at) for n, some in layout.copies.items() for at in some]
    rows: dict[float, list[tuple[float, float, float]]] = {}  # by centre: left, right, half a height
    for n, (x, y) in places:
        rows.setdefault(y, []).append((x - sizes[n][0] / 2, x + sizes[n][0] / 2, sizes[n][1] / 2))
    for (a, b), points in layout.routes.items():
        assert (points[0][0], points[0][1] - sizes[a][1] / 2) in [at for n, at in places if n == a]
        assert points[-1] == (layout.at[b][0], layout.at[b][1] - sizes[b][1] / 2)
        for (x, y), (_, below) in zip(points, points[1:], strict=False):
            assert y < below
            for centre, row in rows.items():
                if y < centre < below:  # straight down past this layer
                    assert all(not left < x < right for left, right, _ in row)


def test_weights_of_a_recurrent_layer_stand_beside_each_use() -> None:
    picture = recurrent()
    layout = picture.svg()
    root = ET.fromstring(layout)
    assert float(root.get("width", "nan")) < 1500
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert texts.count("weight_hh") > 50
    assert picture.source.count("weight_hh") == 1, "DOT has each node once"
    states = [float(t.get("x", "nan")) for t in root.iter(f"{SVG}text") if t.text == "RnnSequenceBackward0"]
    assert len(states) == 200
    assert max(states) - min(states) < 40, "the states of all steps stand below one another"


def test_a_source_with_near_uses_is_one_box() -> None:
    layout = lay_out(dict.fromkeys(range(4), (10.0, 10.0)), [(0, 1), (0, 2), (1, 3), (2, 3)])
    assert not layout.copies
    far = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (9, 1), (9, 2), (9, 5)]
    layout = lay_out(dict.fromkeys([*range(6), 9], (10.0, 10.0)), far)
    assert len(layout.copies[9]) == 1
    assert set(layout.routes) == set(far)


def chain(n: int) -> Any:
    x = y = tt.randn(2, requires_grad=True)
    for _ in range(n):
        y = y * 1.0001
    return y, x


def ladder(n: int) -> Any:
    x = y = tt.randn(2, requires_grad=True)
    for _ in range(n // 2):
        y = y + x.sin()
    return y, x


def fan(n: int) -> Any:
    """All states of a long run in one sum: edges over the whole picture."""
    x = y = tt.randn(2, requires_grad=True)
    states = []
    for _ in range(n // 2):
        y = y * 1.0001
        states.append(y.sin())
    return tt.stack(states).sum(), x


@pytest.mark.parametrize("make", [chain, ladder, fan])
def test_ten_thousand_nodes_are_drawn(make: Callable[[int], Any]) -> None:
    y, x = make(10_000)
    picture = make_dot(y, {"x": x})
    svg = picture.svg()
    assert len(picture.boxes) > 10_000
    assert svg.count("<rect") > 10_000
