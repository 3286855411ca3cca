"""Classes and modes below autograd as programs write them: what handlers are told, what comes back, gradients, copies, parameters."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.overriding.wrappers import Holding, Log, bare
from tritensor.ground.pytree import tree_map
from tritensor.torch_dispatch.asking import DisableTorchDispatch
from tritensor.utils._python_dispatch import (
    TorchDispatchMode,
    is_in_torch_dispatch_mode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)

aten = tt.ops.aten


class Scaled(tt.Tensor):
    """Whole numbers with a scale: it answers a few ops itself, and computes the others on its values."""

    @staticmethod
    def __new__(cls, whole: tt.Tensor, scale: float) -> Any:
        return tt.Tensor._make_wrapper_subclass(cls, whole.shape, dtype=tt.float32, device=whole.device)  # type: ignore[attr-defined]

    def __init__(self, whole: tt.Tensor, scale: float) -> None:
        self.whole, self.scale = whole, scale

    def __tensor_flatten__(self) -> Any:
        return ["whole"], self.scale

    @staticmethod
    def __tensor_unflatten__(inner: Any, scale: Any, size: Any, stride: Any) -> Any:
        return Scaled(inner["whole"], scale)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (aten.detach.default, aten.clone.default, aten.t.default):
            return cls(func(args[0].whole), args[0].scale)

        def plain(x: Any) -> Any:
            return x.whole.to(tt.float32) * x.scale if isinstance(x, cls) else x

        return func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))


class Slotted(tt.Tensor):
    """What it holds stands in a slot."""

    __slots__ = ("inner",)
    __torch_function__ = tt._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: tt.Tensor) -> Any:
        made = tt.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)  # type: ignore[attr-defined]
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*tree_map(lambda x: x.inner if isinstance(x, cls) else x, args), **(kwargs or {}))
        return tree_map(lambda x: cls(x) if isinstance(x, tt.Tensor) else x, out)


@pytest.fixture
def names() -> Iterator[list[str]]:
    """The ops that Holding was told of in a test."""
    Holding.names.clear()
    yield Holding.names
    Holding.names.clear()


def test_gradients_of_any_order_are_of_the_class(names: list[str]) -> None:
    x = Holding(tt.tensor([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
    y = (x * x + 2 * x).sum()
    assert type(y) is Holding
    assert y.grad_fn is not None
    y.backward()
    assert type(x.grad) is Holding
    assert x.grad.held.tolist() == [[4, 6], [8, 10]]
    (g,) = tt.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = tt.autograd.grad(g.sum(), x)
    assert h.held.tolist() == [[6, 12], [18, 24]]
    assert names[:4] == ["aten.mul.Tensor", "aten.mul.Tensor", "aten.add.Tensor", "aten.sum.default"]


def test_what_is_held_records_nothing() -> None:
    """Handlers run below autograd: the graph is that of the tensors outside."""
    held = tt.ones(2, requires_grad=True)
    x = Holding(held, requires_grad=True)
    y = x * 2
    assert y.held.grad_fn is None
    y.sum().backward()
    assert held.grad is None
    assert x.grad.held.tolist() == [2, 2]


def test_writes_and_views(names: list[str]) -> None:
    x = Holding(tt.zeros(4))
    view = x[1:3]
    x.add_(2)
    x[0] = 5
    view.mul_(3)
    assert x.held.tolist() == [5, 6, 6, 2]
    assert [n for n in names if "_." in n] == ["aten.add_.Tensor", "aten.copy_.default", "aten.mul_.Tensor"]
    assert x._version == 3
    y = Holding(tt.ones(3), requires_grad=True) * 1
    y[1:].mul_(5)  # in the graph: the op without writing, then the write
    y.sum().backward()
    assert y.held.tolist() == [1, 5, 5]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.detach(), lambda x: x.clone(), lambda x: x.data, lambda x: x.view(3, 1), lambda x: tt.zeros_like(x), lambda x: x.to(tt.float64),
        lambda x: tt.cat([x, tt.ones(3)]), lambda x: tt.stack([x, x]), lambda x: x.new_ones(2), lambda x: x.max(0).values, lambda x: x.sort()[0],
        lambda x: tt.where(x > 0, x, 0), lambda x: x.std(), lambda x: x.chunk(3)[0], lambda x: tt.nn.LayerNorm(3)(x), lambda x: tt.ones(3) + x,
    ],
)  # fmt: skip
def test_results_are_of_the_class(f: Any) -> None:
    assert type(f(Holding(tt.ones(3)))) is Holding


def test_values_are_asked_of_the_handler() -> None:
    x = Holding(tt.tensor([3.0]))
    assert (float(x), x.item(), bool(x > 2), f"{x.sum():.1f}") == (3.0, 3.0, True, "3.0")
    with pytest.raises(tt.errors.NoValuesError, match="Holding: this function needs the values"):
        Holding(tt.ones(2)).tolist()


def test_a_parameter_of_a_class_that_computes_by_itself() -> None:
    layer = tt.nn.Linear(2, 2, bias=False)
    layer.weight = tt.nn.Parameter(Scaled(tt.tensor([[1, 2], [3, 4]], dtype=tt.int8), 0.5), requires_grad=False)
    x = tt.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [[2, 3]]
    assert isinstance(layer.weight, tt.nn.Parameter)
    assert type(layer.state_dict()["weight"]) is Scaled
    twin = copy.deepcopy(layer)
    assert type(twin.weight) is Scaled
    assert twin.weight.whole is not layer.weight.whole
    assert type(layer.weight + 1) is tt.Tensor, "its handler gives plain tensors, and no __torch_function__ of Tensor's makes them its own"


@pytest.mark.parametrize("optimizer", [tt.optim.SGD, tt.optim.Adam, tt.optim.AdamW, tt.optim.RMSprop])
def test_an_optimizer_steps_it_by_its_ops(optimizer: Any) -> None:
    p, q = tt.nn.Parameter(Holding(tt.ones(3))), tt.nn.Parameter(tt.ones(3))
    for t in (p, q):
        one = optimizer([t], lr=0.1)
        for _ in range(2):
            (t * t).sum().backward()
            one.step()
    assert p.held.tolist() == pytest.approx(q.tolist())


def test_copies_and_pickles_keep_attributes() -> None:
    x = Scaled(tt.tensor([1, 2]), 0.5)
    x.note = "own"
    twin = copy.deepcopy(Slotted(tt.ones(2)))
    assert (type(twin), twin.inner.tolist()) == (Slotted, [1, 1])
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is Scaled
        assert (y.whole.tolist(), y.scale, y.note) == ([1, 2], 0.5, "own")


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.filterwarnings("ignore:load")
def test_a_file_keeps_attributes_and_slots(tmp_path: Path, weights_only: bool) -> None:
    given = {"scaled": Scaled(tt.tensor([1, 2]), 0.5), "slotted": Slotted(tt.ones(2)), "again": tt.nn.Parameter(Holding(tt.ones(3)))}
    tt.save(given, tmp_path / "file.pt")
    with tt.serialization.safe_globals([Scaled, Slotted, Holding]):
        found = tt.load(tmp_path / "file.pt", weights_only=weights_only)
    assert [type(t) for t in found.values()] == [Scaled, Slotted, Holding]
    assert (found["scaled"].whole.tolist(), found["scaled"].scale) == ([1, 2], 0.5)
    assert found["slotted"].inner.tolist() == [1, 1]
    assert isinstance(found["again"], tt.nn.Parameter)
    assert found["again"].requires_grad
    if weights_only:
        with pytest.raises(tt.errors.CheckpointError, match="Scaled"):
            tt.load(tmp_path / "file.pt")


def test_workers_hand_it_over() -> None:
    loader = tt.utils.data.DataLoader([0, 1, 2], batch_size=None, num_workers=1, collate_fn=_scale)
    assert [(type(t), t.whole.tolist()) for t in loader] == [(Scaled, [i, 2]) for i in range(3)]


def _scale(i: int) -> Scaled:
    return Scaled(tt.tensor([i, 2]), 0.5)


def test_calls_that_are_one_op_in_pytorch_are_told_as_one(names: list[str]) -> None:
    x = Holding(tt.arange(4.0))
    mask = tt.tensor([True, False, True, False])
    assert x[mask].held.tolist() == [0, 2]
    assert x.sort(stable=True)[0].held.tolist() == [0, 1, 2, 3]
    x.select(0, 1), x.std(), x.masked_fill(mask, 0.0), x.index_select(0, tt.tensor([1])), x.view(2, 2).t().contiguous()
    assert names == [
        "aten.index.Tensor", "aten.sort.stable", "aten.select.int", "aten.std.correction", "aten.masked_fill.Scalar", "aten.index_select.default",
        "aten.view.default", "aten.t.default", "aten.clone.default",
    ]  # fmt: skip


def test_it_says_what_it_is() -> None:
    assert repr(Holding(tt.ones(2))) == "Holding(..., size=(2,))"
    assert str(tt.Tensor._make_subclass(Holding, tt.ones(2))) == "Holding([1., 1.])"  # type: ignore[attr-defined]
    assert Holding(tt.ones(2)).data_ptr() == 0


def test_a_class_over_memory_of_its_own() -> None:
    class Marked(tt.Tensor):
        @staticmethod
        def __new__(cls, x: tt.Tensor) -> Any:
            made = tt.Tensor._make_subclass(cls, x)  # type: ignore[attr-defined]
            made.inner = x
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*tree_map(lambda x: x.inner if isinstance(x, cls) else x, args), **(kwargs or {}))

    x = Marked(tt.ones(3))
    x.add_(1)
    assert (x + 1).tolist() == [3, 3, 3]
    assert x.numpy().tolist() == [2, 2, 2]
    with DisableTorchDispatch():
        assert (x + 1).tolist() == [3, 3, 3]


def test_transforms_lie_above() -> None:
    def f(t: Any) -> Any:
        return (t**2).sum()

    assert tt.func.grad(f)(Holding(tt.ones(3))).held.tolist() == [2, 2, 2]


def test_a_mode_sees_plain_tensors_and_tells_nobody_afterwards() -> None:
    layer, x = tt.nn.Linear(3, 4), tt.randn(2, 3)
    before = layer(x)
    with Log() as log:
        assert is_in_torch_dispatch_mode()
        y = layer(x)
        y.relu().sum().backward()
    assert log.names[:4] == ["aten.t.default", "aten.addmm.default", "aten.relu.default", "aten.sum.default"]
    assert "aten.mm.default" in log.names[4:], "backward is told as well"
    count = len(log.names)
    assert (layer(x) == before).all()
    assert tt.allclose(y, before)
    assert len(log.names) == count
    assert layer.weight.grad.shape == (4, 3)


def test_modes_nest_and_come_before_classes() -> None:
    seen: list[str] = []

    class Named(TorchDispatchMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f"{self.name} {func} {[t.__name__ for t in types]}")
            return func(*args, **(kwargs or {}))

    Holding.names.clear()
    with Named("outer"), Named("inner"):
        y = Holding(tt.ones(2)) + 1
    assert type(y) is Holding
    assert seen[-2:] == ["inner aten.add.Tensor ['Holding']", "outer aten.add.Tensor ['Holding']"]
    assert Holding.names[-1] == "aten.add.Tensor"


def test_an_index_that_holds_an_array_beside_a_tensor() -> None:
    x, rows = tt.arange(6.0).reshape(2, 3), np.array([[0, 1], [1, 0]])
    with Log():
        assert x[rows, tt.tensor([0, 2])].tolist() == [[0.0, 5.0], [3.0, 2.0]]


def test_a_mode_is_of_its_thread() -> None:
    with Log() as log:
        thread = threading.Thread(target=lambda: tt.ones(3) + 1)
        thread.start()
        thread.join()
    assert log.names == []


def test_what_a_mode_gives_takes_the_place() -> None:
    class Zero(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            return tt.zeros_like(out) if func is aten.mul.Tensor else out

    with Zero():
        assert (tt.ones(2) * 3).tolist() == [0, 0]
    assert (tt.ones(2) * 3).tolist() == [3, 3]


def test_overloads_are_compared_looked_up_and_called() -> None:
    add = aten.add.Tensor
    assert add is aten.add.Tensor
    assert add != aten.add.Scalar
    assert {add: 1}[aten.add.Tensor] == 1
    assert (str(add), add.name(), add.overloadpacket, add.namespace) == ("aten.add.Tensor", "aten::add.Tensor", aten.add, "aten")
    assert aten.relu.default.name() == "aten::relu"
    assert pickle.loads(pickle.dumps(add)) is add
    assert add(tt.ones(2), 2).tolist() == [3, 3]
    x = tt.ones(2, requires_grad=True)
    aten.mul.Tensor(x, 3).sum().backward()  # outside of handlers it is differentiable
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(NotImplementedError, match=r"ops\.aten\.no_such_op\.default: no function here has that name"):
        aten.no_such_op.default(x)


def test_flattening_and_aliasing() -> None:
    x = Scaled(tt.tensor([1, 2]), 0.5)
    assert is_traceable_wrapper_subclass(x)
    assert not is_traceable_wrapper_subclass(tt.ones(1))
    assert transform_subclass(x, lambda name, t: t + 1).whole.tolist() == [2, 3]
    assert return_and_correct_aliasing(aten.add_.Tensor, (x, 1), {}, None) is x
    assert return_and_correct_aliasing(aten.add.Tensor, (x, 1), {}, 7) == 7


def test_what_is_wrong_is_named() -> None:
    class Refusing(Holding):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    class Wrong(Holding):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return 3

    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'aten.exp.default'.*Refusing"):
        Refusing(tt.ones(2)).exp()
    with pytest.raises(TypeError, match="exp: a __torch_dispatch__ gave a int"):
        Wrong(tt.ones(2)).exp()
    with pytest.raises(TypeError, match="Plain has no __torch_dispatch__"):
        tt.Tensor._make_wrapper_subclass(type("Plain", (tt.Tensor,), {}), (2,))  # type: ignore[attr-defined]
    with pytest.raises(NotImplementedError, match="dispatch_device: handlers are not asked"):
        tt.Tensor._make_wrapper_subclass(Holding, (2,), dispatch_device=True)  # type: ignore[attr-defined]
    with pytest.raises(NotImplementedError, match="TorchDispatchMode: define __torch_dispatch__"), TorchDispatchMode():
        tt.ones(1)
    assert tt.ones(1).tolist() == [1], "the mode is left"
    assert bare(3) == 3


def test_names_that_programs_look_under() -> None:
    from tritensor._ops import OpOverload, OpOverloadPacket
    from tritensor.utils._mode_utils import no_dispatch
    from tritensor.utils._python_dispatch import _pop_mode_temporarily

    assert isinstance(aten.add.Tensor, OpOverload)
    assert isinstance(aten.add, OpOverloadPacket)
    with Log() as log:
        with no_dispatch():
            tt.ones(2) + 1
        with _pop_mode_temporarily() as mode:
            tt.ones(2) + 1
        assert mode is log
        assert log.names == []
