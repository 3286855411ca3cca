"""Plans of ops against `apply`: the same result, layout, node, versions and errors, whatever an op is called with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd import grad
from tritensor.autograd.node import Node
from tritensor.dispatch import apply, op_calls
from tritensor.dispatch.plans import doors
from tritensor.ground import shortcuts
from tritensor.ground.errors import DeviceError
from tritensor.ops.array import element_strides
from tritensor.ops.table import ops, registry


@pytest.fixture(autouse=True)
def _learns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "BEGIN", -1)
    monkeypatch.setattr(doors, "SEEN_BEFORE", False)
    doors.forget()


def planned(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function's call after one that has taught it what to do."""

    def call(*args: Any, **attrs: Any) -> Any:
        outcome(f, *args, **attrs)
        return f(*args, **attrs)

    return call


DTYPES = ("float16", "bfloat16", "float32", "float64", "int64", "bool", "complex64")
SHAPES = ((2, 3), (3,), (2, 1), (), (0, 3), (4, 2, 3), (4,))


def made(shape: tuple[int, ...], dtype: str, how: str = "plain", tracked: bool = False, on: str = "cpu") -> tt.Tensor:
    """A tensor of small positive values that lies plainly, turned, stretched or with gaps in memory."""
    n = int(np.prod(shape))
    values = (tt.arange(n) % 5 + 1).reshape(shape)
    x = values.to(getattr(tt, dtype)).to(on)
    if how == "turned":
        x = x.transpose(0, -1).contiguous().transpose(0, -1) if x.ndim else x
    elif how == "stretched" and x.ndim and x.shape[0]:
        x = x[:1].expand(shape)
    elif how == "gapped" and x.ndim:
        x = tt.stack([x, x + 1], -1)[..., 0]
    return x.detach().requires_grad_() if tracked and dtype in DTYPES[:4] else x


def outcome(f: Callable[..., Any], *args: Any, **attrs: Any) -> Any:
    try:
        return f(*args, **attrs)
    except (TypeError, ValueError, IndexError, RuntimeError) as e:
        return type(e), str(e)


def difference(quick: Any, long: Any, cast: bool = False) -> str:
    """What can be told apart of two outcomes of one call; "" for nothing. `cast`: each call made nodes of its own below."""
    if not isinstance(long, tt.Tensor) or not isinstance(quick, tt.Tensor):
        return "" if type(quick) is type(long) and (isinstance(quick, tt.Tensor) or quick == long) else f"{quick} and {long}"
    if type(quick._array) is not type(long._array) or quick.dtype != long.dtype or quick.shape != long.shape:
        return f"{quick.dtype} {quick.shape} and {long.dtype} {long.shape}"
    if quick.numel() and element_strides(quick._array) != element_strides(long._array):
        return f"strides {quick.stride()} and {long.stride()}"
    if not np.array_equal(quick.cpu()._array, long.cpu()._array, equal_nan=True):
        return f"{quick.tolist()} and {long.tolist()}"
    if (
        quick.requires_grad != long.requires_grad
        or (quick._version_counter is None) != (long._version_counter is None)
        or quick._base is not long._base
    ):
        return "flags"
    return "" if cast or (quick._node is None and long._node is None) else _nodes(quick, long)


def _nodes(quick: tt.Tensor, long: tt.Tensor) -> str:
    a, b = quick._node, long._node
    if a is None or b is None or a.op is not b.op or len(a.edges) != len(b.edges):
        return f"nodes {a} and {b}"
    if any(e is not f for e, f in zip(a.edges, b.edges, strict=True)):
        return f"edges {a.edges} and {b.edges}"
    kept = [[x if isinstance(x, tt.Tensor) else repr(x) for x in n.inputs or ()] for n in (a, b)]
    for x, y in zip(*kept, strict=False):
        if isinstance(x, tt.Tensor) and x is not y:
            return f"saved {x} and {y}"
    for t, n in ((quick, a), (long, b)):
        for held in n.outputs or ():
            if held is not None and (held[0] is not t._array or held[1] is not t._version_counter):
                return "a saved output that is not the output"
    if (a.outputs is None) != (b.outputs is None):
        return "saved outputs"
    return _meta(a, b)


def _meta(a: Node, b: Node) -> str:
    """`apply` notes shapes whenever an op asks for them; a path may leave them out where both are alike and nothing is to be undone."""
    if a.meta is not None and b.meta is not None and tuple(a.meta) != tuple(b.meta):
        return f"shapes {a.meta} and {b.meta}"
    return "" if a.meta is not None or b.meta is None or a.op.broadcasts else "shapes are missing"


def backwards(y: tt.Tensor, *inputs: tt.Tensor) -> list[Any]:
    """First and second gradients."""
    if not y.requires_grad:
        return []
    of = [x for x in inputs if isinstance(x, tt.Tensor) and x.requires_grad]
    first = grad((y * y).sum(), of, create_graph=True)
    total = functools.reduce(tt.add, [(g * g).sum() for g in first])
    second = grad(total, of, allow_unused=True) if total.requires_grad else []
    return [g.tolist() for g in first] + [None if g is None else g.tolist() for g in second]


@pytest.mark.parametrize("name", ["sub", "mul", "div", "lt"])
@pytest.mark.parametrize("tracked", [(False, False), (True, False), (False, True), (True, True)])
def test_two_inputs(name: str, tracked: tuple[bool, bool]) -> None:
    op, path = registry[name], planned(getattr(ops, name))
    for dtypes in (("float32", "float32"), ("float32", "float64"), ("bfloat16", "bfloat16"), ("int64", "int64")):
        for first in SHAPES:
            for second in SHAPES:
                for how, lies in (("plain", "plain"), ("turned", "plain"), ("gapped", "turned")):
                    a, b = made(first, dtypes[0], how, tracked[0]), made(second, dtypes[1], lies, tracked[1])
                    for x, y in ((a, b), (b, a)):
                        wrong = difference(outcome(path, x, y), outcome(apply, op, x, y), cast=dtypes[0] != dtypes[1])
                        assert not wrong, (name, dtypes, x.shape, y.shape, how, wrong)


@pytest.mark.parametrize("name", ["sub", "div", "pow", "le"])
@pytest.mark.parametrize("tracked", [False, True])
def test_a_tensor_and_a_number(name: str, tracked: bool) -> None:
    op, path = registry[name], planned(getattr(ops, name))
    for dtype in DTYPES:
        for number in (2, 2.5, -0.0, 0.0, True, 1j, 2**60, np.float32(1.5), np.int64(3), "a", None, [1.0]):
            for shape in ((2, 3), ()):
                x = made(shape, dtype, tracked=tracked)
                for given in ((x, number), (number, x)):
                    with np.errstate(all="ignore"):
                        quick, long = outcome(path, *given), outcome(apply, op, *given)
                    cast = isinstance(long, tt.Tensor) and long._node is not None and long.dtype != x.dtype
                    assert not difference(quick, long, cast), (name, dtype, given, difference(quick, long))


@pytest.mark.parametrize("name", ["sub", "pow", "le", "hypot", "atan2", "fmod", "logical_and", "logical_xor", "logaddexp", "xlogy"])
def test_a_number_that_a_plan_holds(name: str) -> None:
    for dtype in ("float32", "float64"):
        for number in (True, 2, 1.5):
            x = made((2, 3), dtype)
            for given in ((number, x), (x, number)):
                path = planned(op_calls.bind(registry[name]))
                assert not difference(outcome(path, *given), outcome(apply, registry[name], *given)), (dtype, given)


@pytest.mark.parametrize(("name", "on"), [("sub", "cpu"), ("mul", "cpu"), ("div", "cpu"), ("maximum", "cpu"), ("mul", "cuda")])
def test_gradients_of_two_inputs(name: str, on: str) -> None:
    op, path = registry[name], planned(getattr(ops, name))
    shapes = ((2, 3), (3,), (2, 1), ()) if on == "cpu" else ((2, 3), (3,))
    for first in shapes:
        for second in (*shapes, 2.0):
            a = made(first, "float64", tracked=True, on=on)
            b = 2.5 if isinstance(second, float) else made(second, "float64", tracked=True, on=on)
            for x, y in ((a, b), (b, a)):
                assert backwards(path(x, y), x, y) == backwards(apply(op, x, y), x, y), (name, first, second)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("exp", {}), ("relu", {}), ("sqrt", {}), ("neg", {}), ("sigmoid", {}), ("logical_not", {}), ("leaky_relu", {"negative_slope": 0.1}),
        ("softmax", {"dim": -1}), ("cumsum", {"dim": 0}), ("sum", {"dim": (0,)}), ("amax", {"dim": (-1,), "keepdim": True}), ("flip", {"dims": (0,)}),
        ("copy", {}), ("reshape", {"shape": (6,)}), ("permute", {"dims": (1, 0)}), ("index_view", {"index": (0,)}), ("expand", {"shape": (2, 2, 3)}),
    ],
)  # fmt: skip
def test_one_input(name: str, attrs: dict[str, Any], on: str) -> None:
    op, path = registry[name], planned(getattr(ops, name))
    for dtype in DTYPES if on == "cpu" else ("float32", "int64"):
        for how in ("plain", "turned", "stretched"):
            for tracked in (False, True):
                for mode in (tt.enable_grad, tt.no_grad):
                    x = made((2, 3), dtype, how, tracked, on)
                    with mode():
                        for _ in range(2 if on == "cuda" else 1):
                            quick, long = outcome(path, x, **attrs), outcome(apply, op, x, **attrs)
                            cast = isinstance(long, tt.Tensor) and long._node is not None and long.dtype != x.dtype
                            assert not difference(quick, long, cast), (name, dtype, how, tracked, difference(quick, long))
                        if (
                            mode is tt.enable_grad
                            and isinstance(quick, tt.Tensor)
                            and quick.requires_grad
                            and dtype in ("float32", "float64")
                        ):
                            assert backwards(quick, x) == backwards(long, x), (name, dtype, how)
    for foreign in (None, 1.0, [1.0], np.ones((2, 3))):
        assert not difference(outcome(path, foreign, **attrs), outcome(apply, op, foreign, **attrs))


MATRICES = [(2, 3), (3, 2), (0, 3), (3, 0), (3,), (2, 2, 3), (), (70, 70)]


@pytest.mark.parametrize("tracked", [(False, False, True), (True, False, False), (False, True, False), (True, True, True)])
@pytest.mark.parametrize("name", ["matmul", "linear"])
def test_products(name: str, tracked: tuple[bool, bool, bool]) -> None:
    op, path = registry[name], planned(getattr(ops, name))
    third: list[Any] = [(), (None,)] if name == "matmul" else [(), (None,), (2,), (3,), (1,), (2, 3), (), "wrong type"]
    for dtypes in (("float32", "float32"), ("float32", "float64"), ("int64", "int64")):
        for first in MATRICES:
            for second in MATRICES:
                for how in ("plain", "turned"):
                    a, b = made(first, dtypes[0], how, tracked[0]), made(second, dtypes[1], how, tracked[1])
                    for c in third if how == "plain" and (70, 70) not in (first, second) else [()]:
                        given: tuple[Any, ...] = (a, b)
                        if c == (None,) and name == "linear":
                            given = (a, b, None)
                        elif c == "wrong type":
                            given = (a, b, made((second or (1,))[:1], "float16", tracked=tracked[2]))
                        elif c and name == "linear":
                            given = (a, b, made(c, dtypes[0], tracked=tracked[2]))
                        wrong = difference(outcome(path, *given), outcome(apply, op, *given), cast=dtypes[0] != dtypes[1])
                        assert not wrong, (name, dtypes, first, second, how, c, wrong)


@pytest.mark.parametrize("name", ["matmul", "linear"])
def test_gradients_of_products(name: str) -> None:
    op, path = registry[name], planned(getattr(ops, name))
    for which in [(True, False, False), (False, True, False), (False, False, True), (True, True, True), (True, False, True)]:
        a, b = made((4, 3), "float64", tracked=which[0]), made((3, 2) if name == "matmul" else (2, 3), "float64", tracked=which[1])
        given = (a, b) if name == "matmul" else (a, b, made((2,), "float64", tracked=which[2]))
        quick, long = path(*given), apply(op, *given)
        assert quick.requires_grad == any(which[: len(given)])
        assert backwards(quick, *given) == backwards(long, *given)
        with tt.no_grad():
            assert not path(*given).requires_grad
    chained = path(made((4, 3), "float64", tracked=True) * 2, b.detach() * 1)
    assert chained._node.edges[0] is not None
    assert chained._node.edges[1] is None


def test_products_of_other_things() -> None:
    x = tt.ones(2, 2)
    for name in ("matmul", "linear"):
        for given in [(x, None), (None, x), (x, 1.0), (x, np.ones((2, 2))), (x,), (), (x, x.to("cuda")), (x.to("cuda"), x)]:
            quick = outcome(planned(getattr(ops, name)), *given)
            assert isinstance(quick, tuple)
            assert quick[0] in (TypeError, tt.errors.DeviceError)
    for bias in (1.0, [1.0, 1.0], tt.ones(2, device="cuda")):
        assert outcome(ops.linear, x, x, bias) == outcome(apply, registry["linear"], x, x, bias)


@pytest.mark.parametrize(("name", "on"), [("sum", "cpu"), ("mean", "cpu"), ("amax", "cpu"), ("amin", "cpu"), ("sum", "cuda")])
def test_reductions_that_have_been_looked_at(name: str, on: str) -> None:
    f = planned(getattr(tt, name))
    dims = [None, 0, 1, 2, -1, -2, -3, -4, True, 1.0, (0,), (0, 1), (1, -1), (), (1, 1), "a", np.int64(0)]
    layouts = ("plain", "turned", "stretched") if on == "cpu" else ("plain",)
    for dtype in DTYPES if on == "cpu" else ("float32",):
        for shape in ((2, 3), (3,), (), (0, 3), (2, 1, 2)):
            for how in layouts:
                x = made(shape, dtype, how, tracked=True, on=on)
                for dim in dims:
                    for keepdim in (False, True):
                        quick = outcome(f, x, dim, keepdim)
                        with shortcuts.suspended():
                            long = outcome(f, x, dim, keepdim)
                        assert not difference(quick, long), (name, dtype, shape, how, dim, keepdim, difference(quick, long))
    x = made((2, 3), "float64", tracked=True, on=on)
    for dim in (None, 0, -1):
        quick = backwards(f(x, dim), x)
        with shortcuts.suspended():
            assert quick == backwards(f(x, dim), x)


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("dtype", [tt.float32, tt.float64])
def test_what_is_plain_stays_on_its_path(dtype: tt.dtype, tracked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x, row, square = [tt.ones(shape, dtype=dtype).requires_grad_(tracked) for shape in ((2, 3), (3,), (3, 3))]
    turned, gapped = (t.detach().requires_grad_(tracked) for t in (tt.ones(3, 2, dtype=dtype).t(), tt.ones(2, 6, dtype=dtype)[:, ::2]))
    other = tt.ones(2, 3, dtype=tt.float64 if dtype is tt.float32 else tt.float32).requires_grad_(tracked)
    calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
        (ops.add, (x, x), {}), (ops.add, (x, row), {}), (ops.add, (row, x), {}), (ops.add, (x, 2), {}), (ops.add, (2.5, x), {}), (ops.div, (1, turned), {}),
        (ops.exp, (x,), {}), (ops.exp, (turned,), {}), (ops.softmax, (x,), {"dim": -1}), (ops.reshape, (x,), {"shape": (6,)}),
        (ops.permute, (x,), {"dims": (1, 0)}), (ops.matmul, (x, square), {}), (ops.matmul, (turned, square), {}), (ops.linear, (x, square), {}),
        (ops.linear, (x, square, None), {}), (ops.linear, (x, square, row), {}), (ops.sum, (x,), {"dim": (0, 1)}), (ops.amax, (x,), {"dim": (0,)}),
        (ops.sum, (x,), {"dim": (1,)}), (ops.mul, (gapped, row), {}), (ops.sub, (turned, x), {}), (ops.mul, (other, x), {}),
    ]  # fmt: skip
    for f, given, attrs in calls * 2:  # the first time, a door learns what it is given
        planned(f)(*given, **attrs)
    monkeypatch.setattr(op_calls, "apply", lambda op, *given, **_: pytest.fail(f"{op.name} left its path"))
    for f, given, attrs in calls:
        assert f(*given, **attrs).requires_grad == tracked
    with pytest.raises(pytest.fail.Exception):
        ops.add(x.bool(), x.bool())


def test_a_view_on_the_device_is_made_from_what_the_first_call_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tt.arange(6.0, device="cuda").reshape(2, 3)[:, 1:]
    want = tt.ops.permute(x, dims=(1, 0))
    monkeypatch.setattr(op_calls, "apply", lambda op, *_, **__: pytest.fail(f"{op.name} took the road again"))
    again = tt.ops.permute(x, dims=(1, 0))
    assert again.tolist() == want.tolist() == [[1.0, 4.0], [2.0, 5.0]]
    assert again.stride() == want.stride() == (1, 3)
    assert again.data_ptr() == want.data_ptr()


def test_two_arrays_of_the_device_stay_on_their_path(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = tt.tensor([1.0, 2.0], device="cuda"), tt.tensor([3.0, 5.0], device="cuda")
    for _ in range(4):  # the first calls are recorded
        tt.ops.mul(x, y)
    monkeypatch.setattr(op_calls, "apply", lambda op, *_, **__: pytest.fail(f"{op.name} left its path"))
    assert tt.ops.mul(x, y).tolist() == [3.0, 10.0]


FOREIGN: dict[str, tuple[Callable[[tt.Tensor], Any], str]] = {
    "a word": (lambda x: tt.ops.add(x, "a"), "add: other is a str, not a tensor"),
    "a word beside one of numpy's numbers": (lambda x: tt.ops.add(np.float32(2), "b"), "add: other is a str, not a tensor"),
    "a list": (lambda x: tt.ops.where(x > 0, x, [1]), "where: other is a list, not a tensor"),
    "an optional one": (lambda x: tt.ops.clamp(x, [1], None), "clamp: low is a list, not a tensor"),
    "a number where none broadcasts": (lambda x: tt.ops.matmul(x, 2.0), "matmul: other is a float, not a tensor"),
    "one of numpy's there": (lambda x: tt.ops.matmul(x, np.float64(2)), "matmul: other is a float, not a tensor"),
    "anything": (lambda x: tt.ops.hypot(x, object()), "hypot: other is a object, not a tensor"),
}


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_operand_is_named(name: str, on: str) -> None:
    call, says = FOREIGN[name]
    with pytest.raises(TypeError, match=f"^{says}; wrap it with tritensor.tensor"):
        call(tt.ones(2, device=on))


def test_one_operand_too_many() -> None:
    x, w, b = tt.ones(2, 3), tt.ones(4, 3), tt.ones(4)
    assert ops.linear(x, w, b).tolist() == [[4.0] * 4] * 2
    for given in ((x, w, b, b), (x.cuda(), w.cuda(), b.cuda(), b.cuda())):
        with pytest.raises(TypeError, match="linear: takes "):
            ops.linear(*given)


@pytest.mark.quick
def test_tensors_of_two_devices_are_told_to_meet_on_the_gpu() -> None:
    for a, b in (("cpu", "cuda"), ("cuda", "cpu")):
        with pytest.raises(DeviceError, match=r"move the others with \.to\('cuda:0'\)"):
            tt.zeros(2, device=a) + tt.zeros(2, device=b)
