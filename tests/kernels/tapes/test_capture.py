"""Capture: the steps of every op's corners compute what the op does; what has no steps is told; the table of those that have."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import triton

from tests.kernels.tapes.captured import RECORD, own_ops, survey
from tests.kernels.tapes.reading import ask, read
from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.device import cpu
from tritensor.ground.thread_state import here
from tritensor.kernels.parts.elementwise import elementwise, unchanged
from tritensor.kernels.parts.formulas.activations import gelu, gelu_tanh
from tritensor.kernels.parts.tapes.capture import ArraySpec, capture, dry, steps_of
from tritensor.ops.array import from_host, to_host
from tritensor.ops.replay.recorder import NotThere
from tritensor.ops.replay.steps import Folded, NotSteps, Pointwise, Spreading, StepRecorder
from tritensor.ops.table import Op, registry
from tritensor.testing.questions.cases import cases, types

F32, F64, BF16, BOOL = (np.dtype(np.float32), np.dtype(np.float64), dtypes.bfloat16.numpy, np.dtype(bool))


def asked_types(op: Op) -> list[str]:
    """float32, a 16-bit and a 64-bit type, integers and booleans, as far as an op takes them; else its first."""
    return [t for t in ("float32", "float64", "bfloat16", "int32", "uint8", "bool") if t in types(op)] or [types(op)[0]]


@pytest.mark.parametrize(
    "op", [op for op in own_ops() if op.name in json.loads(RECORD.read_text())["forward"]["whole"]], ids=lambda op: op.name
)
def test_steps_compute_what_the_op_does(op: Op) -> None:
    """Forward against the reference, backward against the rule, in every layout that the walk asks of an op."""
    made, readings = read(op)
    found, asked = [], 0
    for dtype in asked_types(op):
        for case in cases(op, dtype, cpu):
            if any(x.dtype.kind == "c" for x in (*[v for v in case.values if isinstance(v, np.ndarray)], *case.expected)):
                continue
            case.op = made
            said, n = ask(case)
            found += [f"{case}: {line}" for line in said]
            asked += n
    assert not found, f"{len(found)} findings\n" + "\n".join(found[:20])
    assert asked
    assert not readings[0].opaque


def test_no_op_lost_its_steps() -> None:
    """captured.json is what the corners say today; the share is printed."""
    now, ops = survey(), own_ops()
    backward = sum(op.backward is not None for op in ops)
    print(f"captured: {len(now['forward']['whole'])} of {len(ops)} forward, {len(now['backward']['whole'])} of {backward} backward")
    assert now == json.loads(RECORD.read_text()), "write it anew: python -m tests.kernels.tapes.captured"


# -- what a step says
def test_a_pointwise_step_is_what_run_was_given() -> None:
    x, y = dry((3, 4), F32), dry((4,), F32)
    captured = capture(registry["lerp"].forward, (x, y, 0.5), {})  # type: ignore[arg-type]
    assert captured is not None
    (step,) = captured.steps
    assert isinstance(step, Pointwise)
    assert step.operands[0] is x
    assert step.operands[1] is y
    assert step.operands[2] == 0.5
    assert type(step.operands[2]) is float
    assert step.picks == ((0, 1, 2),)
    assert not step.wide
    assert step.outs == (captured.results,)
    assert captured.results.shape == (3, 4)
    assert captured.results.storage not in (x.storage, y.storage)


def test_numbers_are_as_the_kernel_gets_them() -> None:
    wide = capture(registry["add"].forward, (dry((3,), F64), 2), {})  # type: ignore[arg-type]
    whole = capture(registry["add"].forward, (dry((3,), np.dtype(np.int8)), 2), {})  # type: ignore[arg-type]
    assert wide is not None
    assert whole is not None
    assert type(wide.steps[0].operands[1]) is np.float64
    assert wide.steps[0].wide
    assert type(whole.steps[0].operands[1]) is np.int8
    assert not whole.steps[0].wide


def test_the_corner_picks_the_formula() -> None:
    x = dry((8,), F32)
    exact = capture(registry["gelu"].forward, (x,), {"approximate": "none"})  # type: ignore[arg-type]
    by_tanh = capture(registry["gelu"].forward, (x,), {"approximate": "tanh"})  # type: ignore[arg-type]
    assert exact is not None
    assert by_tanh is not None
    assert exact.steps[0].formulas == (gelu,)
    assert by_tanh.steps[0].formulas == (gelu_tanh,)


def test_half_types_keep_the_corners_formula() -> None:
    captured = capture(registry["gelu"].forward, (dry((8,), BF16),), {"approximate": "none"})  # type: ignore[arg-type]
    assert captured is not None
    assert captured.steps[0].formulas == (gelu,)


def test_a_split_fold_is_one_step() -> None:
    captured = capture(registry["sum"].forward, (dry((1 << 22,), F32),), {"dim": (0,), "keepdim": False})  # type: ignore[arg-type]
    assert captured is not None
    (step,) = captured.steps
    assert isinstance(step, Folded)
    assert step.dims == (0,)
    assert step.ys == (captured.results,)
    assert step.states == (F32,)


def test_a_gradient_that_spreads() -> None:
    op = registry["var"]
    assert op.backward is not None
    x, g = dry((4, 6), F32), dry((4, 1), F32)
    values = {"x": x, "dim": (1,), "keepdim": True, "correction": 1}
    captured = capture(op.backward.functions[0], (g, *[values[n] for n in op.backward.names[0]]), {})  # type: ignore[arg-type]
    assert captured is not None
    assert any(isinstance(s, Spreading) for s in captured.steps)


def test_fills_and_copies_are_pointwise() -> None:
    filled = capture(registry["constant_pad"].forward, (dry((2, 3), F32),), {"sides": ((0, 0), (1, 2)), "value": 7})  # type: ignore[arg-type]
    assert filled is not None
    fill, copy = filled.steps
    assert isinstance(fill, Pointwise)
    assert fill.operands == (7.0,)
    assert fill.formulas == (unchanged,)
    assert isinstance(copy, Pointwise)
    assert copy.outs[0].storage is fill.outs[0].storage
    assert copy.outs[0].offset == 1
    assert copy.outs[0].shape == (2, 3)


def test_parts_side_by_side_are_copies_into_windows() -> None:
    x, y = dry((2, 3), F32), dry((2, 5), F32)
    captured = capture(registry["cat"].forward, (x, y), {"dim": 1})  # type: ignore[arg-type]
    assert captured is not None
    assert [(s.operands[0], s.outs[0].offset) for s in captured.steps] == [(x, 0), (y, 3)]  # type: ignore[union-attr]


def test_a_result_may_be_an_argument_or_a_view_of_one() -> None:
    add, flip = registry["add"], registry["permute"]
    assert add.backward is not None
    g = dry((3, 4), F32)
    unchanged_g = capture(add.backward.functions[0], (g,), {})  # type: ignore[arg-type]
    assert unchanged_g is not None
    assert unchanged_g.results is g
    assert not unchanged_g.steps
    turned = steps_of(flip, "forward", (ArraySpec((3, 4), F32, (4, 1)),), {"dims": (1, 0)})
    assert turned is not None
    assert not turned.steps
    assert turned.results.storage is turned.args[0].storage
    assert turned.results.strides == (1, 4)


# -- what has no steps
def test_a_kernel_of_its_own_makes_a_call_opaque() -> None:
    a = dry((8, 8), F32)
    assert capture(registry["softmax"].forward, (a,), {"dim": 1}) is None  # type: ignore[arg-type]
    assert capture(registry["cumsum"].forward, (a,), {"dim": 1}) is None  # type: ignore[arg-type]


@triton.jit
def _twice(x, y):
    pass


@pytest.mark.parametrize("touch", [
    lambda x: to_host(x), lambda x: from_host(np.zeros(3), x.device), lambda x: launch(_twice, (1,), x, x),
    lambda x: x.storage.read(np.zeros(4, np.uint8), 0), lambda x: x.storage.write(np.zeros(4, np.uint8), 0),
], ids=["to_host", "from_host", "launch", "read", "write"])  # fmt: skip
def test_memory_is_not_there(touch: Any) -> None:
    raised = []

    def corner(x: Any) -> Any:
        try:
            return touch(x)
        except NotThere as error:
            raised.append(error)
            raise

    assert capture(corner, (dry((3,), F32),), {}) is None
    assert raised
    assert here.recorder is None


def test_memory_is_not_there_outside_either() -> None:
    x = dry((3,), F32)
    with pytest.raises(NotThere):
        to_host(x)
    with pytest.raises(NotThere):
        x.storage.write(np.zeros(3, np.float32), 0)
    with pytest.raises(NotThere):
        x.data_ptr()
    add: Any = registry["add"].forward
    for _ in range(2):
        with pytest.raises(NotSteps):
            add(x, x)
    with pytest.raises(NotSteps):
        launch(_twice, (1,), (x[1:], 2), x)


def test_a_type_without_kernels_has_no_steps() -> None:
    z = dry((3,), np.dtype(np.complex64))
    assert steps_of(registry["exp"], "forward", (ArraySpec((3,), z.dtype, (1,)),), {}) is None


def test_a_mistake_of_a_corner_is_seen() -> None:
    with pytest.raises(ZeroDivisionError):
        capture(lambda x: 1 // 0, (dry((3,), F32),), {})
    assert here.recorder is None


def test_the_recorder_says_why() -> None:
    before, here.recorder = here.recorder, StepRecorder()
    try:
        with pytest.raises(NotSteps, match="launches _twice"):
            launch(_twice, (1,), 1, 1)
    finally:
        here.recorder = before


# -- the look-up
def test_captures_are_remembered() -> None:
    op, spec = registry["add"], ArraySpec((3, 4), F32, (4, 1))
    first = steps_of(op, "forward", (spec, 2.0), {})
    assert first is not None
    assert steps_of(op, "forward", (spec, 2.0), {}) is first
    others = [
        (spec, 2),
        (spec, -0.0),
        (spec, 0.0),
        (ArraySpec((3, 4), F32, (1, 3)), 2.0),
        (ArraySpec((3, 4), F64, (4, 1)), 2.0),
        (spec, spec),
    ]
    found = [steps_of(op, "forward", args, {}) for args in others]
    assert len({id(c) for c in [first, *found]}) == 1 + len(others)
    assert found[3].results.strides == (1, 3)  # type: ignore[union-attr]


def test_a_gradient_is_looked_up_by_its_place() -> None:
    spec = ArraySpec((3,), F32, (1,))
    left, right = (steps_of(registry["div"], i, (spec, spec, spec)[: 2 + i], {}) for i in (0, 1))
    assert left is not None
    assert right is not None
    assert left.steps != right.steps
    assert steps_of(registry["eq"], 0, (spec, spec), {}) is None


@triton.jit
def _tripled(x):
    return x * 3.0


@triton.jit
def _tripled_grad(g):
    return g * 3.0


def test_an_authors_op_takes_part_and_another_in_its_place_is_captured_anew() -> None:
    spec = ArraySpec((5,), F32, (1,))
    made = elementwise("tripled_of_capture", _tripled, _tripled_grad, lambda x: x * 3.0)
    try:
        first = steps_of(made, "forward", (spec,), {})
        assert first is not None
        assert first.steps[0].formulas == (_tripled,)
        elementwise("tripled_of_capture", _tripled, _tripled_grad, lambda x: x * 3.0, replace=True)
        again = steps_of(made, "forward", (spec,), {})
        assert again is not None
        assert again is not first
    finally:
        registry.pop("tripled_of_capture")


def test_threads_capture_at_once() -> None:
    names = ["add", "mul", "sub", "maximum"] * 50
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: capture(registry[n].forward, (dry((4,), F32), dry((4,), F32)), {}), names))  # type: ignore[arg-type]
    for name, captured in zip(names, found, strict=True):
        assert captured is not None
        assert len(captured.steps) == 1
        alone = capture(registry[name].forward, (dry((4,), F32), dry((4,), F32)), {})  # type: ignore[arg-type]
        assert alone is not None
        assert captured.steps[0].formulas == alone.steps[0].formulas


def test_a_process_on_the_cpu_alone_captures() -> None:
    """Without an emulator and without a driver: no runtime is started, also not by a corner that asks for the device."""
    program = """
import numpy as np
import tritensor.kernels
from tritensor.cuda.runtime import active
from tritensor.kernels.parts.tapes.capture import capture, dry
from tritensor.ops.table import registry
x = dry((32, 32), np.dtype(np.float32))
assert capture(registry["gelu"].forward, (x,), {"approximate": "none"}) is not None
assert capture(registry["mean"].forward, (x,), {"dim": (1,), "keepdim": True}) is not None
assert capture(registry["matmul"].forward, (x, x), {}) is None
assert not active.started()
"""
    given = {"PATH": "", "PYTHONPATH": ":".join(sys.path), "TRITON_INTERPRET": "0"}
    subprocess.run([sys.executable, "-c", program], check=True, env=given)
