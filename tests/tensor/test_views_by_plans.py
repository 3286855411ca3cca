"""Views in one step against the long way: the same shape, strides, memory, graph, gradients, writes and errors, whatever is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd import grad, gradcheck, gradgradcheck
from tritensor.dispatch.plans import doors
from tritensor.ground import shortcuts

FAST = ("reshape", "view", "transpose", "swapaxes", "permute", "unsqueeze", "squeeze", "t", "expand", "select")
Call = tuple[str, tuple[Any, ...]]


@pytest.fixture(autouse=True)
def _learns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "BEGIN", -1)
    monkeypatch.setattr(doors, "SEEN_BEFORE", False)


@pytest.fixture
def long_way() -> Callable[..., Any]:
    """Runs something without plans."""

    def run(f: Callable[..., Any], *args: Any) -> Any:
        with shortcuts.suspended():
            return f(*args)

    return run


def sources(dtype: tt.dtype = tt.float64) -> dict[str, tt.Tensor]:
    """Tensors of every way to lie in memory."""
    flat = tt.arange(24, dtype=dtype)
    return {
        "0-d": tt.tensor(3.0, dtype=dtype),
        "1-d": flat[:6].clone(),
        "one": tt.ones(1, dtype=dtype),
        "2-d": flat[:6].reshape(2, 3).clone(),
        "3-d": flat.reshape(2, 3, 4).clone(),
        "ones": flat[:3].reshape(1, 3, 1).clone(),
        "turned": flat.reshape(2, 3, 4).clone().transpose(0, 2),
        "part": flat.reshape(2, 3, 4).clone()[:, 1:, ::2],
        "offset": flat.reshape(4, 6).clone()[2],
        "expanded": flat[:3].reshape(3, 1).clone().expand(3, 2),
        "empty": tt.zeros(0, 3, dtype=dtype),
        "empty too": tt.zeros(2, 0, dtype=dtype),
        "five": flat[:4].reshape(1, 2, 1, 2, 1).clone(),
    }


SIZES = [
    (), (-1,), (6,), (1,), (0,), (2, 3), (3, 2), (1, 6), (-1, 3), (3, -1), (2, -1, 2), (0, -1), (-1, 0), (24,), (4, 6), (2, 3, 4), (4, 3, 2),
    ((2, 3),), ([3, 2],), (-1, -1), (2, -2), (-2, 3), (-1, -2), (7,), (2.0, 3), ("a",), (None,), (np.int64(3), 2), (True, 6), (3, 0), (1, 3, 1),
]  # fmt: skip
DIMS = [0, 1, 2, 3, 4, 5, -1, -2, -3, -4, -5, -6, True, 1.0, None, "a", np.int64(0)]
INDICES = [
    0, 1, 2, 3, -1, -2, -3, -4, True, np.int64(1), slice(None), slice(1, None), slice(None, -1), slice(1, 9), slice(-9, 1), slice(2, 1),
    slice(None, None, 2), slice(1, None, 3), slice(None, None, -1), slice(None, None, 0), slice(1.0, None), slice(None, 1.0),
    slice(None, None, 1.0), slice(True, None), slice(None, None, True), slice(np.int64(1), None), (), (0,), (0, 0), (-1, 1), (1, slice(1, None)),
    (slice(None), 1), (slice(None), slice(None, None, 2)), (slice(None), -1, slice(1)), (0, 0, 0), (0, 0, 0, 0), (5,), (0, 7), (0, -7), (slice(None), 1.0),
    (slice(None, None, -1), 0), (None, 0), (..., 0), (0, ...), None, ..., [0, 1], (0, True), (slice(None, None, 0),), (0, [0]),
    (..., -1), (..., slice(1)), (0, ..., 1), (slice(1), ...), (..., 0, ...), (..., [0, 0]), (..., None), (..., 9), (..., tt.tensor([0, 0])),
    (None,), (None, None), (slice(None), None), (slice(None), None, slice(1)), (None, slice(1), None, -1), (None, 0, 0, 0, 0), (None, ..., None, 0),
    (0, None, ..., slice(1), None), (None, ..., 0, 0, 0, 0, 0, 0), (None, 9), (None, slice(None, None, -1)), (None, [0]), (None, True),
    tt.tensor(0), tt.tensor(-1), tt.tensor(5), tt.tensor(0, dtype=tt.int32), tt.tensor(True), tt.tensor(1.0),
]  # fmt: skip
STRETCHES = [
    (), (1,), (2,), (3,), (6,), (0,), (2, 6), (4, 2, 3), (2, 3), (2, 3, 4), (5, 2, 3, 4), (2, 3, 2), (1, 3, 1), (3, 3, 5), (-1, 3, 5), (2, -1, 3, -1), (-1,),
    (0, 3), (0, 6), (2, 0), (2, -2), (-1, 6), (0, 0, 3), (2.0,), (3, 2.0), (1.0,), (6.0,), ("a",), ((2, 6),), ([2, 6],), (np.int64(2), 6), (True,),
    (1, 2, 1, 2, 1), (3, 2, 3, 2, 2),
]  # fmt: skip
CALLS: list[Call] = [
    *[("reshape", a) for a in SIZES],
    *[("view", a) for a in SIZES],
    *[(name, (d,)) for name in ("squeeze", "unsqueeze") for d in DIMS],
    *[(name, (a, b)) for name in ("transpose", "swapaxes") for a in DIMS for b in (0, 1, -1, -3, 3, 1.0, False)],
    *[
        ("permute", a)
        for a in [
            (), (0,), (-1,), (0, 1), (1, 0), (-1, 0), (-1, -2), (0, 0), (0, -2), (1, 2), (2, 0, 1), (0, 1, 2), (-1, 0, 1), (0, 1, 3), (0, 1, -4),
            (2, 1, -1), (True, 0), (1.0, 0), (0.0,), ((1, 0),), ([2, 1, 0],), (4, 3, 2, 1, 0), ("a",), ([0], 1), (np.int64(1), 0), (-6, 1, 2, 3, 4),
        ]
    ],
    ("t", ()),
    *[("__getitem__", (i,)) for i in INDICES],
    *[("select", (0, i)) for i in INDICES],
    *[("select", (d, 0)) for d in [*DIMS, 0.0, False]],
    *[("expand", a) for a in STRETCHES],
]  # fmt: skip


def outcome(x: tt.Tensor, call: Call) -> Any:
    """What a call gives: a tensor, or the error's type and text."""
    name, args = call
    try:
        made = getattr(x, name)(*args)
        if x.is_cuda:
            tt.cuda.synchronize()  # an index out of range among many is found by the kernel
        return made
    except (TypeError, ValueError, IndexError, RuntimeError) as e:
        return type(e), str(e)


def same(a: Any, b: Any, x: tt.Tensor) -> bool:
    """Whether two outcomes of one call on x are alike in all that can be seen."""
    if not isinstance(a, tt.Tensor) or not isinstance(b, tt.Tensor):
        return type(a) is type(b) and (a if isinstance(a, tuple) else None) == (b if isinstance(b, tuple) else None)
    if type(a._array) is not type(b._array) or a.dtype != b.dtype or a.shape != b.shape or a.tolist() != b.tolist():
        return False
    if not all(type(n) is int for n in a.shape) or (a.numel() and a.stride() != b.stride()):
        return False
    if (a._base is None) != (b._base is None) or a.requires_grad != b.requires_grad or a._version != b._version:
        return False
    viewed = [t._base is not None and (t._base is x or t._base is x._base) for t in (a, b)]
    if viewed[0] != viewed[1] or (
        viewed[0]
        and (a.data_ptr() != b.data_ptr() or a._version_counter is not x._version_counter or b._version_counter is not x._version_counter)
    ):
        return False
    if str(a.grad_fn) != str(b.grad_fn) or a.is_leaf != b.is_leaf:
        return False
    origins = [t._extra.origin if t._extra is not None else "" for t in (a, b)]
    ways = [[op.name for op, _, _ in t._view_path[1:]] if t._view_path is not None else None for t in (a, b)]
    return origins[0] == origins[1] and ways[0] == ways[1]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("where", sources())
def test_fast_and_long(where: str, on: str, long_way: Callable[..., Any]) -> None:
    for tracked in (False, True):
        for mode in (tt.enable_grad, tt.no_grad) if on == "cpu" else (tt.enable_grad,):
            x = (sources()[where] * 1).to(on)
            x.requires_grad_(tracked)
            wrong = []
            for call in CALLS:
                with mode():
                    fast, again = outcome(x, call), outcome(x, call)  # the second may find what the first has noted
                    long = long_way(outcome, x, call)
                if not same(fast, long, x) or not same(again, long, x):
                    wrong.append((call, fast, long))
            assert not wrong, f"{len(wrong)}: {wrong[:3]}"


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16, tt.float32, tt.int64, tt.bool, tt.complex64, tt.float8_e4m3fn])
def test_every_type(dtype: tt.dtype, long_way: Callable[..., Any]) -> None:
    x = tt.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0]]).to(dtype)
    if dtype in (tt.float16, tt.bfloat16, tt.float32):
        x.requires_grad_()
    calls: list[Call] = [
        ("reshape", (3, 2)), ("transpose", (0, 1)), ("permute", (1, 0)), ("unsqueeze", (0,)), ("squeeze", (0,)), ("__getitem__", (1,)),
        ("__getitem__", (slice(1, None),)), ("expand", (2, 2, 3)), ("view", (-1,)),
    ]  # fmt: skip
    for call in calls:
        fast, long = outcome(x, call), long_way(outcome, x, call)
        assert fast.stride() == long.stride()
        assert fast.to(tt.complex64).tolist() == long.to(tt.complex64).tolist()
        assert fast.requires_grad == long.requires_grad == x.requires_grad


GRADIENTS: list[tuple[str, Call]] = [
    ("2-d", ("reshape", (3, 2))), ("2-d", ("view", (-1,))), ("3-d", ("transpose", (0, 2))), ("3-d", ("permute", (2, 0, 1))), ("2-d", ("t", ())),
    ("2-d", ("unsqueeze", (1,))), ("ones", ("squeeze", (0,))), ("ones", ("squeeze", (-1,))), ("3-d", ("__getitem__", (-1,))),
    ("3-d", ("__getitem__", (slice(1, None),))), ("3-d", ("__getitem__", ((-1, slice(None, None, 2)),))), ("turned", ("__getitem__", ((1, 2, -1),))),
    ("ones", ("expand", (2, 3, 4))), ("one", ("expand", (3, 2))), ("0-d", ("expand", (2, 2))), ("part", ("transpose", (-1, 0))),
    ("1-d", ("__getitem__", (slice(1, 5, 2),))), ("2-d", ("select", (0, 1))),
]  # fmt: skip


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize(("where", "call"), GRADIENTS, ids=[f"{w}-{c[0]}{c[1]}" for w, c in GRADIENTS])
def test_gradients(where: str, call: Call, on: str, long_way: Callable[..., Any]) -> None:
    x = (sources()[where].detach() / 7 + 0.3).to(on).requires_grad_()

    def f(x: tt.Tensor) -> tt.Tensor:
        y = getattr(x, call[0])(*call[1])
        return (y * y.cumsum(-1) if y.ndim else y * y) * y

    def all_orders() -> list[Any]:
        y = f(x).sum()
        (g,) = grad(y, x, create_graph=True)
        (h,) = grad((g * g).sum(), x)
        return [y.tolist(), g.tolist(), h.tolist()]

    assert all_orders() == long_way(all_orders)
    if on == "cpu":  # the graph is the same on the emulated device, where it takes seconds
        assert gradcheck(f, (x,))
        assert gradgradcheck(f, (x,))


@pytest.mark.parametrize(("where", "call"), GRADIENTS, ids=[f"{w}-{c[0]}{c[1]}" for w, c in GRADIENTS])
def test_writes_through_the_view_and_the_base(where: str, call: Call, long_way: Callable[..., Any]) -> None:
    def story() -> list[Any]:
        x = sources()[where].detach().clone().requires_grad_()
        w = tt.tensor(3.0, dtype=tt.float64, requires_grad=True)
        base = x * 2
        view = getattr(base, call[0])(*call[1])
        seen = [view._version, base._version]
        if call[0] == "expand":
            with pytest.raises(RuntimeError, match="share one cell"):
                view.mul_(w)
        else:
            view.mul_(w)
        base.add_(w)
        inner = view.unsqueeze(0)
        seen += [view._version, base._version, inner._version, inner.grad_fn.name(), inner._base is base]
        (base * base).sum().backward(retain_graph=True)
        (inner * inner).sum().backward()
        return [*seen, x.grad.tolist(), w.grad.tolist(), base.tolist(), view.tolist(), inner.tolist()]

    assert story() == long_way(story)


def test_a_view_of_a_view_leads_to_the_base(long_way: Callable[..., Any]) -> None:
    def story() -> list[Any]:
        x = tt.arange(24, dtype=tt.float64).requires_grad_()
        base = x * 1
        views = [base.reshape(2, 3, 4)]
        views += [views[0].transpose(0, 2), views[0][1], views[0].unsqueeze(0)]
        views += [views[1].permute(2, 1, 0)[0], views[2][..., 1:3].t(), views[3].squeeze(0).expand(2, 3, 4)]
        views[5].mul_(10)
        views[4].add_(x[0])
        found = [(v._base is base, [op.name for op, _, _ in v._view_path[1:]], v._version, v.tolist()) for v in views]
        (g,) = grad(sum((v * v).sum() for v in views), x)
        return [*found, g.tolist(), base.tolist()]

    assert story() == long_way(story)


def test_views_of_leaves_and_under_no_grad_refuse_writes() -> None:
    x = tt.ones(2, 3, requires_grad=True)
    views = (
        lambda x: x.reshape(6),
        lambda x: x.t(),
        lambda x: x[0],
        lambda x: x[:, 1],
        lambda x: x.unsqueeze(0),
        lambda x: x.permute(1, 0),
    )
    for view in views:
        with pytest.raises(RuntimeError, match="view of a leaf"):
            view(x).add_(1)
        base = x * 1
        with tt.no_grad():
            made = view(base)
            assert made.requires_grad
            assert made.is_leaf
        with pytest.raises(RuntimeError, match="no_grad"):
            made.mul_(2)
        assert base._version == 0
        first = view(base)  # the base has views now
        with tt.no_grad():
            made = view(base)
        with pytest.raises(RuntimeError, match="no_grad"):
            made.mul_(2)
        first.mul_(2)
        assert base._version == 1


def test_strides_of_a_stretched_array_are_not_taken_for_those_of_one_with_gaps() -> None:
    dense, gaps = tt.zeros(4, 3), tt.from_numpy(np.arange(48, dtype=np.int8).reshape(4, 12)[:, ::4])
    assert dense._array.strides == gaps._array.strides
    assert dense.expand(2, 4, 3).shape == (2, 4, 3)
    assert gaps.expand(2, 4, 3).tolist() == [gaps.tolist()] * 2


def test_the_dead_among_many_views_are_forgotten() -> None:
    base = tt.zeros(4, requires_grad=True) * 1
    kept = [base[k % 4] for k in range(10)]
    for _ in range(1000):
        base[1:]
    assert len(base._extra.views.fresh) < 100
    base.mul_(2)
    assert all(v.grad_fn is not None and v.grad_fn.next_functions[0][0] is base.grad_fn for v in kept)


def test_the_living_among_many_views_are_not_forgotten() -> None:
    base = tt.zeros(4, requires_grad=True) * 1
    views = [base[k % 4] for k in range(100)]
    del views[::3]
    views += [base[k % 3 :] for k in range(100)]
    base.mul_(2)
    assert all(v.grad_fn is not None and v.grad_fn.next_functions[0][0] is base.grad_fn for v in views)


def test_what_is_noted_of_one_call_does_not_let_another_through() -> None:
    x = tt.zeros(2, 3)
    x.transpose(1, 0)
    x.permute(1, 0)
    for wrong in (lambda: x.transpose(1.0, 0), lambda: x.transpose(True, 0), lambda: x.permute(1.0, 0), lambda: x.permute(1, 0.0)):
        with pytest.raises(TypeError, match="integer"):
            wrong()
    with pytest.raises(IndexError):
        tt.zeros(2).transpose(1, 0)
