"""FlopCounterMode: what it counts, by module, beside a profile, in its table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.profiler import ProfilerActivity, profile
from tritensor.utils.checkpoint import checkpoint
from tritensor.utils.flop_counter import FlopCounterMode


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(4 * 6 * 6, 5))

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        return self.head(self.conv(x).relu())  # type: ignore[no-any-return]


CONV = 2 * 2 * 4 * 36 * 9  # of two images
LINEAR = 2 * 2 * 144 * 5


def test_forward_and_backward_by_module() -> None:
    x = tt.rand(2, 1, 8, 8)
    with FlopCounterMode(display=False) as counter:
        y = Net()(x)
        assert counter.get_total_flops() == CONV + LINEAR, "asked inside the block"
        y.sum().backward()
    counts = counter.get_flop_counts()
    assert counts["Net.conv"] == {"conv2d": CONV, "conv2d backward": CONV}, "the images want no gradient"
    assert counts["Net.head.1"] == {"linear": LINEAR, "linear backward": 2 * LINEAR}
    assert counts["Net.head"] == counts["Net.head.1"]
    assert counts["Net"] == counts["Global"]
    assert counter.get_total_flops() == 2 * CONV + 3 * LINEAR


def doubly_differentiated() -> None:
    a, b = (tt.rand(5, 3, requires_grad=True), tt.rand(3, 4, requires_grad=True))
    g, h = tt.autograd.grad((a @ b).pow(2).sum(), (a, b), create_graph=True)
    (g.sum() + h.sum()).backward()


def transposed() -> None:
    x, w = tt.rand(2, 4, 8, 8, requires_grad=True), tt.rand(4, 3, 3, 3, requires_grad=True)
    nn.functional.conv_transpose2d(x, w, stride=2, groups=2).sum().backward()


def recorded_gradient() -> None:
    x, w = tt.rand(2, 4, 8, 8, requires_grad=True), tt.rand(6, 4, 3, 3, requires_grad=True)
    tt.autograd.grad(nn.functional.conv2d(x, w).sum(), (x, w), create_graph=True)


def computed_anew() -> None:
    layers = nn.Sequential(nn.Linear(3, 4, bias=False), nn.ReLU(), nn.Linear(4, 6, bias=False))
    checkpoint(layers, tt.rand(5, 3, requires_grad=True), use_reentrant=False).sum().backward()


@pytest.mark.parametrize(
    ("run", "wanted"),
    [
        (doubly_differentiated, 120 * (1 + 2 + 4 + 2)),
        (transposed, 3 * (2 * 2 * 4 * 64 * 3 * 9)),
        (recorded_gradient, 3 * (2 * 2 * 6 * 36 * 4 * 9)),
        (computed_anew, 4 * (120 + 240)),
    ],
)
def test_a_product_that_a_gradient_is_made_of_counts_once(run: Callable[[], None], wanted: int) -> None:
    """Whether its rule calls ops that are counted themselves or not, and whether a checkpoint computes something anew in between or not."""
    with FlopCounterMode(display=False) as counter:
        run()
    assert counter.get_total_flops() == wanted


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with FlopCounterMode(depth=1):
        Net()(tt.rand(2, 1, 8, 8))
    out = capsys.readouterr().out
    assert "Global" in out
    assert "Net" in out
    assert "Net.conv" not in out
    assert "100.00%" in out
    with pytest.raises(ZeroDivisionError), FlopCounterMode() as counter:
        1 / 0  # noqa: B018
    assert capsys.readouterr().out == ""
    assert counter.get_table().endswith("0.00%")


def test_beside_a_profile() -> None:
    x = tt.rand(4, 4)
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        with FlopCounterMode(display=False) as counter:
            x @ x
        x @ x
    assert counter.get_total_flops() == 2 * 4**3
    assert next(e.count for e in prof.key_averages() if e.key == "matmul") == 2


def test_counts_of_ones_own() -> None:
    x = tt.rand(3, 4)
    seen: list[Any] = []

    def exps(shape: tuple[int, ...]) -> int:
        seen.append(shape)
        return 10 * shape[0] * shape[1]

    with FlopCounterMode(display=False, custom_mapping={tt.ops.aten.exp: exps}) as counter:
        x.exp()
    assert counter.get_flop_counts() == {"Global": {"exp": 120}}
    assert seen == [(3, 4)]
    with pytest.raises(ArgumentError, match="custom_mapping gives 3"):
        FlopCounterMode(custom_mapping={"exp": 3})  # type: ignore[dict-item]


def test_attention_and_recurrent_layers() -> None:
    q = tt.rand(2, 4, 8, 16, requires_grad=True)
    each = 2 * 2 * 4 * 8 * 8 * 16
    with FlopCounterMode(display=False) as counter:
        tt.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    assert counter.get_flop_counts()["Global"] == {"attention": 2 * each, "attention backward": 5 * each}
    with FlopCounterMode(display=False) as counter:
        nn.LSTM(4, 8)(tt.rand(5, 1, 4))
    assert counter.get_total_flops() > 0
