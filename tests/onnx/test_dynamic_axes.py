"""Sizes that vary: what the model reads of them stays computed in the graph, and what cannot is named with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tests.onnx.agreement import agree
from tritensor import nn

BOTH = {0: {0: "a", 1: "b"}}
# Functions of x (a, b, 4), and what they do with the sizes
FUNCTIONS: dict[str, Callable[[tt.Tensor], Any]] = {
    "view": lambda x: x.view(x.size(0), -1), "view of a product": lambda x: x.view(x.size(0) * x.size(1), 4), "flatten": lambda x: x.flatten(0, 1),
    "two dimensions in one and out": lambda x: (x.reshape(-1, 4) * 2).view(x.shape[0], x.shape[1], 4), "half": lambda x: x[: x.size(0) // 2 + 1],
    "slices": lambda x: x[:, 1:-1, ::2], "the last": lambda x: x[:, -1], "negative steps of flip": lambda x: x.flip(1), "one less": lambda x: x[:, : x.size(1) - 1],
    "zeros": lambda x: tt.cat([x, tt.zeros(x.size(0), 1, 4)], 1), "positions": lambda x: x + tt.arange(x.size(1)).unsqueeze(-1),
    "reversed positions": lambda x: x + tt.arange(x.size(1) - 1, -1, -1).unsqueeze(-1), "mask": lambda x: x.masked_fill(tt.ones(x.size(1), 4).triu(1).bool(), 0.0),
    "division by a size": lambda x: x.sum(1) / x.size(1), "root of a size": lambda x: x / x.size(1) ** 0.5, "eye": lambda x: tt.eye(x.size(1)) + x[0, 0, 0],
    "mean": lambda x: x.mean((0, 1)), "variance": lambda x: x.var(1), "expand": lambda x: x.mean(1, keepdim=True).expand(-1, x.size(1), -1), "repeat": lambda x: x.repeat(2, 1, 3),
    "chunk": lambda x: x.chunk(2, dim=2), "cumsum": lambda x: x.cumsum(1), "sort": lambda x: x.sort(1).values, "softmax": lambda x: x.softmax(1), "roll": lambda x: x.roll(1, 1),
    "new tensors like it": lambda x: x.new_ones(x.size(1), 1) + tt.zeros_like(x), "linspace": lambda x: tt.linspace(0, 1, x.size(1)).unsqueeze(1) * x,
    "gather": lambda x: x.gather(1, tt.zeros(x.size(0), 1, 4, dtype=tt.int64)), "index": lambda x: x[:, [0, 1, 0]], "stack": lambda x: tt.stack([x, x + 1], 1),
    "products": lambda x: x @ x.transpose(1, 2), "outer indices": lambda x: x[tt.arange(x.size(0)), 0], "last of each": lambda x: x[tt.arange(x.size(0)), x.size(1) - 1],
    "normalize": lambda x: F.normalize(x, dim=1), "windows": lambda x: x.unfold(1, 2, 1), "meshgrid": lambda x: tt.meshgrid(tt.arange(x.size(0)), tt.arange(x.size(1)), indexing="ij")[0] + x[..., 0],
    "argmax": lambda x: x.argmax(1), "topk": lambda x: x.topk(2, 1)[0], "tril": lambda x: tt.tril(x.transpose(1, 2)), "cdist": lambda x: tt.cdist(x, x), "one_hot": lambda x: F.one_hot(x.argmax(2), 4),
    "a chosen part": lambda x: x.index_select(2, tt.tensor([0, 2])), "numbers repeated": lambda x: x + tt.tensor([1.0, 2.0, 3.0, 4.0]).repeat(x.size(1), 1),
    "one axis pooled": lambda x: (F.adaptive_avg_pool2d(x.unsqueeze(1), (None, 1)), F.adaptive_max_pool2d(x.unsqueeze(1), (1, None))),
    "multiples": lambda x: x @ x.transpose(1, 2) - (tt.arange(x.size(1))[None] - tt.arange(x.size(1))[:, None]).abs() * 0.5, "norms": lambda x: x.norm(dim=1) + x.norm(),
    "a part and the rest": lambda x: tt.split(x, [2, x.size(1) - 2], 1)[1], "scatter": lambda x: tt.zeros(x.size(0), 4).scatter_(1, x.argmax(2)[:, :1], 1.0),
    "median": lambda x: x.median(1)[0], "outer": lambda x: tt.outer(x[0, :, 0], x[0, :, 1]), "interpolated": lambda x: F.interpolate(x.unsqueeze(1), size=x.shape[1:], mode="bilinear"),
    "einsum": lambda x: tt.einsum("abc,adc->abd", x, x), "differences": lambda x: tt.diff(x, dim=1), "twice": lambda x: x.repeat_interleave(2, 1), "patches": lambda x: F.unfold(x.unsqueeze(1), (2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_stay_computed(name: str) -> None:
    tt.manual_seed(0)
    agree(FUNCTIONS[name], (tt.randn(3, 5, 4),), BOTH)


def test_as_many_as_a_mask_says() -> None:
    """The number of elements differs between the traced runs, and so it is the graph's own."""
    with pytest.warns(tt.onnx.TracerWarning, match="reads the values"):
        agree(lambda x: (x[x > 0].sum(), x[x > 0].reshape(1, -1) * 2, (x > 0).nonzero()), (tt.randn(3, 4),), {0: {0: "n"}})


def test_a_sample_of_one() -> None:
    """A size of 1 in the sample is no reason for a 1 in the graph."""
    agree(nn.Sequential(nn.Flatten(), nn.Linear(12, 2)), (tt.randn(1, 3, 4),), {0: {0: "batch"}})
    agree(nn.LSTM(4, 5, batch_first=True), (tt.randn(1, 1, 4),), {0: {0: "batch", 1: "time"}})


def test_images_that_are_halved_vary_by_what_the_net_takes() -> None:
    class Halving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.up = nn.Conv2d(1, 2, 2, 2), nn.ConvTranspose2d(2, 1, 2, 2)

        def forward(self, x: tt.Tensor) -> tt.Tensor:
            return x + self.up(self.down(x))

    agree(Halving(), (tt.randn(1, 1, 8, 6),), {0: {0: "n", 2: "h", 3: "w"}})


def test_a_longest_text_is_not_passed() -> None:
    class Placed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.places = nn.Parameter(tt.randn(16, 4))

        def forward(self, x: tt.Tensor) -> tt.Tensor:
            return x + self.places[: x.size(1)]

    agree(Placed(), (tt.randn(2, 16, 4),), {0: {0: "batch", 1: "time"}}, more=-3)


def test_one_name_is_one_size() -> None:
    program = agree(lambda x, y: x @ y.transpose(1, 2), (tt.randn(2, 5, 4), tt.randn(2, 5, 4)), {0: {0: "n", 1: "t"}, 1: {0: "n", 1: "t"}})
    dims = program.model_proto.graph.output[0].type.tensor_type.shape.dim
    assert [d.dim_param for d in dims] == ["n", "t", "t"]


def test_dynamic_shapes_as_torch_export_writes_them() -> None:
    model, x, Dim = nn.Linear(4, 2), tt.randn(3, 4), tt.export.Dim
    for shapes in (
        {"input": {0: "batch"}},
        ({0: "batch"},),
        ({0: Dim("batch"), 1: None},),
        ((Dim("batch"), None),),
        {"input": ("batch", None)},
    ):
        program = tt.onnx.export(model, (x,), dynamic_shapes=shapes)
        dims = program.model_proto.graph.input[0].type.tensor_type.shape.dim
        assert (dims[0].dim_param, dims[1].dim_value) == ("batch", 4)
    listed = tt.onnx.export(model, (x,), input_names=["a"], dynamic_axes={"a": [0]})
    assert listed.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "a_dynamic_axes_1"
    hinted = tt.onnx.export(model, (x,), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.STATIC},))
    assert hinted.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "input_dim_0"
    assert [repr(d) for d in tt.export.dims("a", "b")] == ["Dim('a')", "Dim('b')"]
    with pytest.raises(ValueError, match="Dim: the name '2x' is no identifier"):
        Dim("2x")
    nested = tt.onnx.export(lambda xs: xs[0] + xs[1], ([x, x],), dynamic_shapes={"xs": [{0: "n"}, {0: "n"}]})
    assert nested.input_names == ["xs_0", "xs_1"]


# -- what cannot stay dynamic
def loop(x: tt.Tensor) -> tt.Tensor:
    y = x[:, 0]
    for k in range(1, x.size(1)):
        y = y + x[:, k]
    return y


def branch(x: tt.Tensor) -> tt.Tensor:
    return x * 2 if x.size(1) > 5 else x.exp()


def fixed(x: tt.Tensor) -> tt.Tensor:
    return x.reshape(-1, 5, 4)


def lists(x: tt.Tensor) -> tt.Tensor:
    return x * tt.tensor([float(k) for k in range(x.size(1))]).unsqueeze(1)


def odd(x: tt.Tensor) -> tt.Tensor:
    return x.sum(1) * (x.size(1) ** 3 % 7 + 0.5) ** 1.3


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (loop, r"calls \d+ ops and not \d+|does something else"),
        (branch, r"the model does something else: exp .*test_dynamic_axes.py:\d+.* is mul .*test_dynamic_axes.py:\d+"),
        (fixed, r"cannot be other than 5|takes inputs of the sample's sizes"),
        (lists, r"a tensor that no op of tritensor made \(.*test_dynamic_axes.py:\d+: float32 \(5,\)\) changes with the sizes"),
        (odd, r"mul .*test_dynamic_axes.py:\d+\): a number of .* follows from no size"),
    ],
)  # fmt: skip
def test_what_cannot_vary_is_named_with_its_place(f: Callable[..., Any], said: str) -> None:
    with pytest.raises(tt.onnx.DynamicAxisError, match=said):
        tt.onnx.export(f, (tt.randn(3, 5, 4),), dynamic_axes={"x": {0: "a", 1: "b"}})
    tt.onnx.export(f, (tt.randn(3, 5, 4),), verify=True)


def test_a_model_that_has_run_before_is_traced_whole() -> None:
    x = tt.randn(3, 5, 4)
    for _ in range(40):  # its calls have plans by now
        FUNCTIONS["positions"](x)
        FUNCTIONS["zeros"](x)
    agree(FUNCTIONS["positions"], (x,), BOTH)
    agree(FUNCTIONS["zeros"], (x,), BOTH)
