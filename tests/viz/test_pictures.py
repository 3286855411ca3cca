"""make_dot draws every node and edge of a graph, in DOT and in SVG; boxes do not lie over one another; summary counts what it should."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.viz import make_dot
from tritensor.viz.layout import lay_out


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_dot_and_svg_tell_the_graph() -> None:
    net = model()
    y = net(tt.ones(1, 3)).softmax(1).sum()
    picture = make_dot(y, params=dict(net.named_parameters()), show_attrs=True, show_saved=True)
    for text in ("0.weight", "2.bias", "AddmmBackward0", "TanhBackward0", "SoftmaxBackward0", "dim: (", "digraph {", "result"):
        assert text in picture.source
    assert picture.source.count(" -> ") == len(picture.edges)
    root = ET.fromstring(picture._repr_svg_())
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("AddmmBackward0") == 2
    assert "0.weight" in texts
    paths = [p for p in root.iter("{http://www.w3.org/2000/svg}path") if p.get("stroke")]
    assert len(paths) == len(picture.edges)


def test_a_shared_node_is_one_box() -> None:
    x = tt.ones(2, requires_grad=True)
    h = x * 2
    picture = make_dot([(h + h.exp()).sum(), h.sum()], params={"x": x})
    labels = [label[0] for label, _ in picture.boxes.values()]
    assert labels.count("MulBackward0") == 1
    assert labels.count("x") == 1
    assert sum(kind == "output" for _, kind in picture.boxes.values()) == 2


def test_boxes_lie_apart_and_edges_lead_down() -> None:
    sizes = {i: (30.0 + 7 * (i % 5), 20.0) for i in range(60)}
    edges = [(i, j) for i in range(60) for j in (i + 1, i + 2, i + 7, 2 * i + 1) if j < 60]
    layout = lay_out(sizes, edges)
    rows: dict[float, list[tuple[float, float]]] = {}
    for n, (x, y) in layout.at.items():
        rows.setdefault(y, []).append((x - sizes[n][0] / 2, x + sizes[n][0] / 2))
    for row in rows.values():
        row.sort()
        assert all(a[1] < b[0] for a, b in zip(row, row[1:], strict=False))
    for (a, b), points in layout.routes.items():
        assert layout.at[a][1] < layout.at[b][1]
        assert all(p[1] < q[1] for p, q in zip(points, points[1:], strict=False))
    assert min(x for x, _ in layout.at.values()) > 0
    with pytest.raises(ValueError, match="circle"):
        lay_out({0: (1, 1), 1: (1, 1)}, [(0, 1), (1, 0)])


def test_a_chain_is_straight_and_a_deep_graph_is_drawn() -> None:
    y = tt.ones(2, requires_grad=True)
    for _ in range(1500):
        y = y + 1
    svg = make_dot(y).svg()
    assert len(set(re.findall(r'<text x="([\d.]+)"', svg))) == 1


def test_names_of_any_characters_are_shown(tmp_path) -> None:
    x = tt.ones(2, requires_grad=True)
    picture = make_dot(x.exp(), params={"w\x00\x1b<&>é\ud800\uffff": x})
    drawn = ET.parse(picture.save(tmp_path / "a.svg"))
    assert "w\\x00\\x1b<&>é\\ud800\\uffff" in ["".join(t.itertext()) for t in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert picture.save(tmp_path / "a.dot").read_text(encoding="utf-8") == picture.source


def test_files(tmp_path) -> None:
    picture = make_dot(tt.ones(2, requires_grad=True).exp())
    assert picture.save(tmp_path / "a.svg").read_text() == picture.svg()
    assert (tmp_path / "b.dot") == picture.save(tmp_path / "b.dot")
    assert picture.render(tmp_path / "c", format="svg") == str(tmp_path / "c.svg")
    assert str(picture) == picture.source
    with pytest.raises(ValueError, match=r"written as \.svg"):
        picture.save(tmp_path / "d.png")
    with pytest.raises(tt.GradError, match="has no graph behind it"):
        make_dot(tt.ones(2))
    with pytest.raises(TypeError, match="params"):
        make_dot(tt.ones(2, requires_grad=True).exp(), params={"x": 3})
