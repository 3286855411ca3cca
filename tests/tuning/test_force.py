"""Configs by force and on request: what is launched follows them, values stay right under all of a kernel's configs, mistakes are told before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground.device import device
from tritensor.ground.errors import ArgumentError
from tritensor.ground.thread_state import here
from tritensor.kernels.parts.axes import Blocks
from tritensor.kernels.parts.configs.element_tiles import ElementTile
from tritensor.kernels.parts.launch_rules import Tiles
from tritensor.kernels.parts.rows.row_tiles import RowTile
from tritensor.ops.array import from_host
from tritensor.ops.replay.recorder import Recorder
from tritensor.ops.table import Sample, registry
from tritensor.ops.tuning.config_choice import FORCED, HEURISTIC, forced_at
from tritensor.ops.tuning.query import choices
from tritensor.ops.tuning.search.targets import space_of
from tritensor.testing.questions.backward import backward_is_rule
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.forward import forward

GPU = device("cuda", 0)
RNG = np.random.default_rng(0)


def launched(name: str, *arrays: np.ndarray, **attrs: Any) -> list[Any]:
    """The launches of one forward call."""
    given = [from_host(a, GPU) for a in arrays]
    here.recorder = Recorder((), dry=True)
    try:
        registry[name].forward(*given, **attrs)  # type: ignore[misc]
        return list(here.recorder.calls)
    finally:
        here.recorder = None


def test_a_kernel_is_forced_in_all_ops_and_an_op_alone() -> None:
    x = np.ones((64, 64), np.float32)
    with tt.tuning.force("elementwise", ElementTile(256, 8)):
        for name in ("add", "mul"):
            (call,) = launched(name, x, x)
            assert (call.named["ROWS"] * call.named["COLS"], call.num_warps) == (256, 8)
    with tt.tuning.force("add", ElementTile(512, 2)):
        (call,), (other,) = launched("add", x, x), launched("mul", x, x)
        assert (call.named["ROWS"] * call.named["COLS"], call.num_warps) == (512, 2)
        assert (other.named["ROWS"] * other.named["COLS"], other.num_warps) == (128, 4)


def test_a_reduction_is_forced_by_op() -> None:
    x = np.ones((50, 300), np.float32)
    with tt.tuning.force("sum", Blocks(4, 32, 1)):
        (call,) = launched("sum", x, dim=(1,), keepdim=False)
        assert (call.named["BM"], call.named["BN"]) == (4, 32)
    (call,) = launched("sum", x, dim=(1,), keepdim=False)
    assert (call.named["BM"], call.named["BN"]) != (4, 32)


def test_replayed_calls_follow() -> None:
    """A recorded launch holds its config: entering and leaving the block forgets it."""
    x = tt.ones(64, 64, device="cuda")
    asked: list[Any] = []

    def noting(key: Any, default: Any) -> Any:
        asked.append(default)
        return default

    for _ in range(2):
        assert (x + x).sum().item() == 8192
    with tt.tuning.force("add", noting):
        for _ in range(2):
            assert (x + x).sum().item() == 8192
    assert asked == [ElementTile(128, 4)]  # the second call was replayed
    assert (x + x).sum().item() == 8192
    assert len(asked) == 1


def test_config_says_what_a_call_takes_and_why() -> None:
    (first, *_) = tt.tuning.config("softmax", tt.ones(8, 100), dim=-1)
    assert (first.op, first.corner, first.kernel, first.source) == ("softmax", "forward", "softmax", HEURISTIC)
    assert first.bucket == "8 128 1 4"
    with tt.tuning.force("softmax", RowTile(2, 128, True, 4)):
        found = tt.tuning.config("softmax", ((8, 100), "bfloat16"), dim=-1)
    assert [(c.corner, c.config, c.source, c.dtype) for c in found] == [
        (corner, RowTile(2, 128, True, 4), FORCED, "bfloat16") for corner in ("forward", "backward")
    ]
    assert [c.kernel for c in tt.tuning.config("linear", ((64, 32), "float16"), ((48, 32), "float16"))][:1] == ["matmul_described"]
    assert tt.tuning.config("reshape", tt.ones(4), shape=(2, 2)) == []


@pytest.mark.parametrize(
    ("name", "config", "said"),
    [
        ("softmx", 3, "no op and no kernel is called 'softmx'; did you mean softmax"),
        ("softmax", 3, r"softmax takes a RowTile\(BM, BN, whole, warps\), not 3"),
        ("add", Blocks(1, 1), r"add has no Blocks, and .* was given; it takes ElementTile\(elements, warps\) for elementwise"),
        ("add", ElementTile(100, 4), "elements is 100; a power of two is needed"),
        ("elementwise", ElementTile(128, 64), "warps is 64; a program has at most 32"),
        ("matmul", Tiles(8, 16, 16, 1, 4, 2), "each side is at least 16"),
        ("layer_norm_weight", Blocks(16, 128), "splits is 0; the number of partial sums is needed"),
        ("reshape", 3, "reshape has no config"),
    ],
)
def test_what_cannot_be_forced(name: str, config: Any, said: str) -> None:
    registry["layer_norm"]  # its file declares a kernel by another name
    with pytest.raises(tt.ArgumentError, match=said):
        tt.tuning.force(name, config)


@pytest.mark.parametrize(
    ("inputs", "attrs", "said"),
    [
        ((), {"dim": 1}, "softmax: missing a required argument: 'x'; its signature is softmax(x, *, dim)"),
        ((((4, 4), "float32"),), {}, "missing a required argument: 'dim'"),
        ((((4, 4), "float32"),), {"dimm": 1}, "missing a required argument: 'dim'"),
        ((((4, 4), "float32"),), {"dim": 1, "axis": 1}, "got an unexpected keyword argument 'axis'"),
    ],
)
def test_arguments_that_the_op_has_not(inputs: tuple[Any, ...], attrs: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=r"tuning\.config: softmax: ") as told:
        tt.tuning.config("softmax", *inputs, **attrs)
    assert said in str(told.value)


def test_a_device_need_not_be_named() -> None:
    attrs = {"shape": (4096,), "value": 2.0, "dtype": np.dtype(np.float32)}
    assert tt.tuning.config("full", **attrs) == tt.tuning.config("full", **attrs, device=GPU)


def test_a_config_that_does_not_fit_the_shape_is_refused_in_the_launch() -> None:
    with tt.tuning.force("softmax", RowTile(1, 16, True, 4)):
        with pytest.raises(tt.ArgumentError, match="whole, but BN 16 holds no row of 40"):
            tt.softmax(tt.ones(3, 40, device="cuda"), dim=-1)
        assert tt.softmax(tt.ones(3, 16, device="cuda"), dim=-1).sum().item() == pytest.approx(3)


CALLS = [
    ("add", Sample(RNG.standard_normal((40, 9)), RNG.standard_normal(9))),
    ("softmax", Sample(RNG.standard_normal((11, 37)), dim=1)),
    ("sum", Sample(RNG.standard_normal((11, 370)), dim=(1,), keepdim=False)),
    ("matmul", Sample(RNG.standard_normal((3, 70)), RNG.standard_normal((70, 18)))),
    ("cumsum", Sample(RNG.standard_normal((5, 130)), dim=1, reverse=False)),
    ("layer_norm", Sample(RNG.standard_normal((11, 37)), RNG.standard_normal(37), RNG.standard_normal(37), eps=1e-5, axes=1)),
]


@pytest.mark.parametrize(("name", "sample"), CALLS, ids=lambda v: v if isinstance(v, str) else "")
def test_values_are_right_under_every_config_of_the_space(name: str, sample: Sample) -> None:
    tried = 0
    for choice in choices(registry[name], sample, "float32"):
        for config in space_of(choice) or ():
            with forced_at({choice.place: config}):
                case = Case(registry[name], 0, sample, "float32", "plain", GPU)
                assert not forward(case) + backward_is_rule(case), (choice, config)
            tried += 1
    assert tried >= 3
