"""summary: shapes, parameters and multiply-adds as published; a model is afterwards what it was, also after an error."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

import tritensor as tt
from tritensor import models, nn
from tritensor.viz import summary


def net() -> nn.Module:
    return nn.Sequential(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), nn.Flatten())


def test_lines_and_sums() -> None:
    model = net()
    model[0][0].weight.requires_grad_(False)
    model[0][0].bias.requires_grad_(False)
    found = summary(model, input_size=(5, 3))
    assert (found.total_params, found.trainable_params, found.total_mult_adds) == (26, 10, 5 * 20)
    assert [(x.path, x.kind, x.depth, x.input, x.output, x.parameters, x.mult_adds) for x in found.lines] == [
        ("", "Sequential", 0, "[5, 3]", "[5, 2]", 0, 0),
        ("0", "Sequential", 1, "[5, 3]", "[5, 2]", 0, 0),
        ("0.0", "Linear", 2, "[5, 3]", "[5, 4]", 16, 60),
        ("0.1", "Tanh", 2, "[5, 4]", "[5, 4]", 0, 0),
        ("0.2", "Linear", 2, "[5, 4]", "[5, 2]", 10, 40),
        ("1", "Flatten", 1, "[5, 2]", "[5, 2]", 0, 0),
    ]
    assert (found.input_bytes, found.output_bytes, found.param_bytes) == (60, 4 * (20 + 20 + 10 + 10), 104)
    text = str(found)
    assert "    2: Linear" in text
    assert "16 frozen" in text
    assert "Mult-adds: 100" in text
    assert summary(model, input_data=tt.ones(2, 3)).lines[-1].output == "[2, 2]"


@pytest.mark.parametrize(
    ("name", "parameters", "mult_adds"),
    [("resnet18", 11_689_512, 1_814_073_344), ("resnet50", 25_557_032, 4_089_184_256), ("alexnet", 61_100_840, 714_188_480)],
)
def test_published_numbers(name: str, parameters: int, mult_adds: int) -> None:
    found = summary(getattr(models, name)(), (1, 3, 224, 224), depth=0)
    assert (found.total_params, found.total_mult_adds) == (parameters, mult_adds)
    assert (found.lines[0].parameters, found.lines[0].mult_adds) == (parameters, mult_adds), "all is counted in the line that is left"


class Odd(nn.Module):
    """Called with a dict, shares a layer, gives nested outputs, has a layer that it does not call."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(4, 4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.norm = nn.BatchNorm1d(4)
        self.left_over = nn.Linear(9, 9)

    def forward(self, x: tt.Tensor, *, scale: float = 1.0, index: tt.Tensor | None = None) -> Any:
        h = self.shared(self.shared(x)) * scale + tt.rand(4)
        h = self.norm(h.flatten(0, 1)).reshape(h.shape)
        return {"h": self.attention(h, h, h)[0], "more": [index, (h.sum(),)]}


def test_dicts_shared_layers_and_layers_that_are_not_called() -> None:
    model = Odd()
    found = summary(model, input_size={"x": (3, 5, 4), "index": (2,)}, dtype={"index": tt.int64}, scale=2.0)
    assert [(x.path, x.again, x.called) for x in found.lines] == [
        ("", False, True), ("shared", False, True), ("shared", True, True), ("norm", False, True), ("attention", False, True),
        ("attention.out_proj", False, False), ("left_over", False, False),
    ]  # fmt: skip
    assert found.lines[0].output == "h: [3, 5, 4], more: [2], []"
    assert found.total_params == sum(p.numel() for p in model.parameters()) == sum(x.parameters for x in found.lines if not x.again)
    text = str(found)
    assert "(again)" in text
    assert "(not called)" in text
    assert found.lines[4].mult_adds == 4 * 15 * 16 + 2 * 15 * 5 * 4


def test_recurrent_and_lazy_layers_and_ones_own() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(tt.zeros(4, 6))

        def forward(self, x: tt.Tensor) -> tt.Tensor:
            return x @ self.weight

    class First(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[0]

    model = nn.Sequential(nn.LazyLinear(3), nn.LSTM(3, 4, batch_first=True, bidirectional=True), First(), nn.Linear(8, 4), Own())
    found = summary(model, (2, 5, 7))
    assert [x.mult_adds for x in found.lines[1:]] == [10 * 21, 10 * 2 * 4 * 4 * (3 + 4), 0, 10 * 32, 10 * 24]
    assert found.lines[1].kind == "Linear"
    assert isinstance(model[0], nn.LazyLinear), "the model stays lazy"
    assert summary(model).lines[1].parameters == 0


def state(model: nn.Module) -> Any:
    return (
        [(m, m.training) for m in model.modules()],
        {k: v.tolist() for k, v in model.state_dict().items()},
        [m._hooks is None or len(m._hooks.forward) + len(m._hooks.forward_pre) for m in model.modules()],
        tt.get_rng_state().tolist(),
    )


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_model_is_afterwards_what_it_was(mode: str) -> None:
    model = Odd()
    model.norm.eval()
    kept = [0]
    handle = model.norm.register_forward_hook(lambda *_: kept.__setitem__(0, kept[0] + 1))
    before = state(model)
    found = summary(model, (3, 5, 4), mode=mode)
    assert state(model) == before
    assert kept == [1]
    with pytest.raises(tt.ShapeError) as caught:
        summary(model, (3, 5, 3), mode=mode)
    assert caught.value.__notes__ == ["summary: the call came as far as shared (Linear), given [3, 5, 3]"]
    assert state(model) == before
    handle.remove()
    assert found.lines


def test_a_notebook_shows_a_table() -> None:
    html = summary(net(), (5, 3))._repr_html_()
    table, _, rest = html.partition("</table>")
    root = ET.fromstring(table + "</table>")
    rows = [[td.text for td in row.iter("td")] for row in root.iter("tr")]
    assert rows[3] == ["0: Linear", "[5, 3]", "[5, 4]", "16", "60"]
    assert "Parameters: 26" in rest


def test_without_inputs_modules_are_listed() -> None:
    found = summary(net())
    assert [(x.path, x.depth) for x in found.lines] == [("", 0), ("0", 1), ("0.0", 2), ("0.1", 2), ("0.2", 2), ("1", 1)]
    assert "Output" not in str(found)
    assert [x.parameters for x in summary(net(), depth=1).lines] == [0, 26, 0]


def test_a_depth() -> None:
    found = summary(net(), (5, 3), depth=1)
    assert [(x.path, x.parameters, x.mult_adds) for x in found.lines] == [("", 0, 0), ("0", 26, 100), ("1", 0, 0)]


def test_several_inputs_of_several_types() -> None:
    class Both(nn.Module):
        def forward(self, a: tt.Tensor, b: tt.Tensor) -> tt.Tensor:
            return a[b]

    assert summary(Both(), [(4, 2), (3,)], dtypes=[tt.float64, tt.int64]).lines[0].output == "[3, 2]"
    assert summary(Both(), input_data=[tt.ones(4, 2), tt.zeros(3, dtype=tt.int64)]).input_bytes == 32 + 24


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"input_size": (1, 3), "input_data": tt.ones(1, 3)}, "input_size and input_data are given; .*one of the two"),
        ({"input_size": ["a"]}, "input_size has 'a'; give a shape"),
        ({"input_size": (1, 3), "mode": "test"}, "mode='test'"),
        ({"input_size": [(1, 3), (1, 3)], "dtypes": [tt.int64]}, "1 dtypes for 2 shapes"),
    ],
)
def test_what_makes_no_sense(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"summary: {said}"):
        summary(net(), **given)
    with pytest.raises(TypeError, match="summary: model is Tensor"):
        summary(tt.ones(1), (1,))


def test_on_the_emulated_device() -> None:
    found = summary(net().to("cuda"), (5, 3))
    assert found.lines[-1].output == "[5, 2]"
