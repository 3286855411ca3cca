"""`op(..., replace=True)`: another record under a name, with nothing left of the first one; and a refusal that names the owner."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.dispatch.plans import doors
from tritensor.ground.errors import RegistrationError
from tritensor.ops.table import ops, registry, restore

NAME = "replacement_test"
CELL = """
import numpy as np
import triton
import triton.language as tl

import tritensor as tt


@triton.jit
def _kernel(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0) * FACTOR, mask=at < n)


def _launch(x):
    y = tt.parts.allocation.allocate(x.shape, x.dtype, x)
    tt.launch(_kernel, (-(-x.size // 64),), tt.parts.copying.to_c_order(x), y, x.size, FACTOR=FACTOR, BLOCK=64)
    return y


def _times(x):
    return (x * FACTOR).astype(x.dtype)


RECORD = tt.op(
    "replacement_test", _times, shape=lambda x: tt.Spec(x.shape, x.dtype), forward=_launch, rule=lambda g: g * float(FACTOR),
    backward=lambda g: _launch(g), samples=lambda rng: [tt.Sample(rng.standard_normal(5))], replace=REPLACE, public=PUBLIC,
)
"""


@pytest.fixture(autouse=True)
def the_name_is_free() -> Iterator[None]:
    yield
    registry.pop(NAME, None)
    registry.replaced.pop(NAME, None)


def cell(number: int, factor: float, replace: bool = True, public: Any = ()) -> Any:
    """Run the op as a notebook does: in `__main__`, from text that only linecache has. Gives the record."""
    file = f"<ipython-input-{number}>"
    linecache.cache[file] = (len(CELL), None, CELL.splitlines(True), file)
    given = {"__name__": "__main__", "FACTOR": factor, "REPLACE": replace, "PUBLIC": public}
    kept, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
    try:
        sys.modules["__main__"].__dict__.update(given)
        exec(compile(CELL, file, "exec"), sys.modules["__main__"].__dict__)
        return sys.modules["__main__"].__dict__["RECORD"]
    finally:
        sys.modules["__main__"] = kept


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_a_notebooks_cell_run_again_serves_the_new_op(where: str) -> None:
    x = tt.ones(100, device=where, requires_grad=True)
    for turn, factor in enumerate((2.0, 3.0)):
        cell(turn, factor)
        for _ in range(3):  # the second call replays what the first has recorded
            y = ops.replacement_test(x)
            x.grad = None
            y.sum().backward()
            assert y.tolist() == [factor] * 100
            assert x.grad.tolist() == [factor] * 100


def test_a_graph_keeps_the_op_that_it_was_recorded_with() -> None:
    x = tt.ones(3, requires_grad=True)
    cell(0, 2.0)
    y = ops.replacement_test(x)
    cell(1, 3.0)
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_the_public_forms_follow() -> None:
    x = tt.ones(3)
    cell(0, 2.0, public=True)
    kept = tt.replacement_test
    assert x.replacement_test().tolist() == [2.0] * 3
    cell(1, 3.0, public="method")
    assert not hasattr(tt, NAME)
    assert x.replacement_test().tolist() == [3.0] * 3
    assert kept(x).tolist() == [3.0] * 3, "the function looks the op up when it is called"
    cell(2, 4.0)
    assert not hasattr(tt.Tensor, NAME)


def test_a_taken_name_tells_where_its_owner_stands() -> None:
    cell(7, 2.0, replace=False)
    with pytest.raises(
        RegistrationError, match=r"the name is taken by <ipython-input-7>:25; write replace=True to put this op in its place, or choose"
    ):
        cell(8, 3.0, replace=False)
    with pytest.raises(RegistrationError, match=r"the name is taken by tritensor itself \(.*kernels/reductions/.*\.py:\d+\)"):
        tt.op("sum", lambda x: x, shape=lambda x: x, samples=lambda rng: [], view=True, differentiable=False)


def test_a_record_that_is_refused_leaves_the_old_one() -> None:
    before = cell(0, 2.0)
    with pytest.raises(RegistrationError, match="rule is missing"):
        tt.op(NAME, np.negative, shape=lambda x: x, samples=lambda rng: [], view=True, inputs=("x",), replace=True)
    assert registry[NAME] is before
    assert ops.replacement_test(tt.ones(1)).item() == 2.0


def _twice(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.add(np.add(a, b), np.add(a, b), out=out)


def _changed(name: str, **changes: Any) -> None:
    """Another op in the place of the library's own `add`, `amax`, ..."""
    old = registry[name]
    fields: dict[str, Any] = {
        "shape": old.shape, "forward": old.forward, "samples": old.samples, "broadcasts": old.broadcasts, "promote": old.promote, "into": old.into,
        "rule": lambda g: (2 * g, 2 * g), "backward": lambda g: (g, g),
    }  # fmt: skip
    fields.update(changes)
    tt.op(name, fields.pop("reference"), **fields, replace=True)


def test_the_librarys_own_op_gives_way_and_comes_back() -> None:
    x, y = tt.ones(3, requires_grad=True), tt.ones(3)
    assert (x + y).tolist() == [2.0] * 3  # the operator's lane is there
    assert tt.ones(3).add_(y).tolist() == [2.0] * 3
    original = registry["add"]
    _changed("add", reference=_twice)
    try:
        assert (x + y).tolist() == [4.0] * 3
        assert tt.add(x, y).tolist() == x.add(y).tolist() == [4.0] * 3
        assert tt.ones(3).add_(y).tolist() == [4.0] * 3
        (x + y).sum().backward()
        assert x.grad.tolist() == [2.0] * 3
    finally:
        assert restore("add") is original
    assert (x + y).tolist() == [2.0] * 3
    assert tt.ones(3).add_(y).tolist() == [2.0] * 3
    assert registry["add"] is original
    with pytest.raises(RegistrationError, match="restore: 'add' was not replaced in this process"):
        restore("add")


def test_plans_serve_the_new_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "BEGIN", -1)
    monkeypatch.setattr(doors, "SEEN_BEFORE", False)
    x = tt.tensor([1.0, 5.0])
    for _ in range(2):
        assert x.sum().item() == 6.0

    def lowered(x: np.ndarray, *, dim: tuple[int, ...], keepdim: bool = False) -> np.ndarray:
        return np.asarray(np.sum(x, axis=dim, keepdims=keepdim) - 1)

    old = registry["sum"]
    tt.op("sum", lowered, shape=old.shape, forward=old.forward, samples=old.samples, differentiable=False, replace=True)
    try:
        assert x.sum().item() == 5.0
    finally:
        restore("sum")
    assert x.sum().item() == 6.0


def test_an_op_that_nobody_has_loaded_is_loaded_before_it_gives_way() -> None:
    import subprocess

    code = """
import tritensor as tt
tt.op("hardswish", lambda x: x * 7, shape=lambda x: tt.Spec(x.shape, x.dtype), forward=lambda x: x, differentiable=False,
      samples=lambda rng: [tt.Sample(rng.standard_normal(3))], replace=True)
tt.ops.hardsigmoid(tt.ones(1))  # of the same file
print(tt.ops.hardswish(tt.ones(1)).item(), tt.nn.functional.hardswish(tt.ones(1)).item())
tt.table.restore("hardswish")
print(tt.ops.hardswish(tt.ones(1)).item() < 1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["7.0", "7.0", "True"]
