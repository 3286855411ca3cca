"""Keys of plans: whatever can change what a call gives is told apart, and nothing that a plan assumed outlives its end."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import os
import threading
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.dispatch.at_once import learns_at_once, plans_of, taught  # noqa: F401
from tritensor import dispatch
from tritensor.dispatch.plans import doors
from tritensor.ground import shortcuts
from tritensor.nn import functional as F
from tritensor.ops.table import registry
from tritensor.tensor.public_api.publish import _door_of

pytestmark = pytest.mark.quick


# -- arguments
def test_a_zero_and_its_negative() -> None:
    x = tt.tensor([-1.0, 1.0])
    for _ in range(2):
        assert [math.copysign(1, v) for v in tt.clamp(tt.tensor([-1.0]), min=0.0).tolist()] == [1.0]
        assert [math.copysign(1, v) for v in tt.clamp(tt.tensor([-1.0]), min=-0.0).tolist()] == [-1.0]
        assert [math.copysign(1, v) for v in (x * 0.0).tolist()] == [-1.0, 1.0]
        assert [math.copysign(1, v) for v in (x * -0.0).tolist()] == [1.0, -1.0]
        assert [math.copysign(1, v) for v in tt.full((2,), -0.0).tolist()] == [-1.0, -1.0]
        assert [math.copysign(1, v) for v in tt.full((2,), 0.0).tolist()] == [1.0, 1.0]


def test_one_and_true_and_a_float() -> None:
    for _ in range(3):
        assert tt.full((1,), 1).dtype == tt.int64
        assert tt.full((1,), True).dtype == tt.bool
        assert tt.full((1,), 1.0).dtype == tt.float32
        assert (tt.ones(2, dtype=tt.int64) + 1).dtype == tt.int64
        assert (tt.ones(2, dtype=tt.int64) + True).dtype == tt.int64
        assert (tt.ones(2, dtype=tt.int64) + 1.0).dtype == tt.float32
        assert (tt.ones(2, dtype=tt.bool) + True).dtype == tt.bool
        assert (tt.ones(2, dtype=tt.bool) + 1).dtype == tt.int64
        assert tt.ones(2, 2).sum((0, 1)).shape == ()
        with pytest.raises(TypeError):
            tt.ones(2, 2).sum((False, True))


def test_numbers_are_taken_anew_at_each_call() -> None:
    x, n = tt.tensor([1.0, 2.0], requires_grad=True), tt.tensor([1, 2])
    for k in (2, 3, 2.5, -1, 10**6, 0.1):
        assert (x * k).tolist() == (np.array([1, 2], np.float32) * np.float32(k)).tolist()
        assert (k - x).tolist() == (np.float32(k) - np.array([1, 2], np.float32)).tolist()
        if isinstance(k, int):
            assert (n * k).tolist() == [k, 2 * k]
        (g,) = tt.autograd.grad((x * k).sum(), x)
        assert g.tolist() == [np.float32(k)] * 2
    small = tt.tensor([1, 2], dtype=tt.uint8)
    assert taught(lambda: small + 3).tolist() == [4, 5]
    with pytest.raises(OverflowError):
        small + 2**70
    assert (tt.tensor([1.0]) + 2**60).tolist() == [float(2**60)]
    assert (tt.tensor([1.0]) * 1e300).tolist() == [math.inf]
    assert math.isnan((tt.tensor([1.0]) + math.nan).item())


def test_lists_and_tuples_and_arguments_by_name() -> None:
    x = tt.arange(6.0).reshape(2, 3)
    for _ in range(3):
        assert (
            x.sum(1).tolist()
            == x.sum(dim=1).tolist()
            == x.sum((1,)).tolist()
            == x.sum([1]).tolist()
            == x.sum(axis=1).tolist()
            == [3.0, 12.0]
        )
        assert x.sum(dim=(0, 1)).tolist() == x.sum().tolist() == 15.0
        assert x.sum(0, True).shape == x.sum(0, keepdim=True).shape == (1, 3)
        assert tt.cat([x, x]).shape == tt.cat((x, x), 0).shape == tt.cat(tensors=[x, x], dim=0).shape == (4, 3)
        assert tt.cat([x, x, x], -1).shape == (2, 9)
        assert x.view(3, 2).shape == x.view((3, 2)).shape == x.view(-1, 2).shape == (3, 2)
        with pytest.raises(TypeError, match="dim is given twice"):
            x.sum(0, dim=1)
        with pytest.raises(TypeError, match="two names for one argument"):
            x.unsqueeze(dim=0, axis=1)


def test_shapes_and_devices_of_tensors() -> None:
    x = tt.arange(6.0)
    for shape in (tt.Size((2, 3)), (2, 3), [2, 3]) * 2:
        assert x.reshape(shape).shape == (2, 3)
    assert plans_of(tt.Tensor.reshape) == 3
    for on in (tt.device("cpu"), "cpu", x.device):
        assert taught(lambda on=on: x.to(on)) is x
        assert taught(lambda on=on: x.to(on, tt.float64)).dtype == tt.float64
    assert plans_of(tt.Tensor.to) == 4  # the name and the device, with and without a type
    assert x.to("meta").is_meta
    assert taught(lambda: tt.zeros_like(x, device="cpu")).tolist() == [0.0] * 6
    assert taught(lambda: tt.zeros_like(x, device="meta")).is_meta


def test_types_of_numpy_are_told_apart() -> None:
    x = tt.arange(3.0)
    for kind in ("float64", ">f8", "int32", "float64"):
        wanted = np.dtype(kind).newbyteorder("=")
        assert taught(lambda wanted=wanted: tt.ops.cast(x, dtype=wanted)).dtype == tt.from_numpy(np.zeros(1, wanted)).dtype
    assert len(_door_of(tt.ops.cast).plans) == 2


def test_one_tensor_twice_and_two() -> None:
    x, y = tt.tensor([2.0], requires_grad=True), tt.tensor([5.0], requires_grad=True)
    for a, b, want in ((x, x, 4.0), (x, y, 10.0), (y, y, 25.0), (x, x, 4.0)):
        z = a * b
        assert z.item() == want
        assert [None if g is None else g.item() for g in tt.autograd.grad(z, (x, y), allow_unused=True)] == {
            4.0: [4.0, None], 10.0: [5.0, 2.0], 25.0: [None, 10.0],
        }[want]  # fmt: skip
    assert taught(lambda: tt.cat([x, x])).tolist() == [2.0, 2.0]
    assert tt.cat([x, y]).tolist() == [2.0, 5.0]


# -- tensors
def test_how_a_tensor_lies() -> None:
    x = tt.arange(6.0).reshape(2, 3)
    forms = [x, x.t(), x[:, ::2], x[:1].expand(2, 3), x.double(), x.reshape(3, 2), x.flatten()]
    for _ in range(3):
        for t in forms:
            for f in (tt.neg, tt.Tensor.contiguous, lambda t: t.sum(0), lambda t: t.flatten(), lambda t: t * 2):
                quick = f(t)
                with shortcuts.suspended():
                    long = f(t)
                assert (quick.tolist(), quick.stride(), quick.dtype) == (long.tolist(), long.stride(), long.dtype)


def test_a_tensor_that_looks_at_another_array() -> None:
    x = tt.zeros(2, 3)
    taught(lambda: x + 1)
    x.data = tt.ones(4)
    assert (x + 1).shape == (4,)
    x.resize_(6)
    assert (x + 1).shape == (6,)
    y = tt.zeros(2, 3)
    taught(lambda: y * 2)
    y.t_()
    assert (y * 2).shape == (3, 2)
    z = tt.zeros(2, 3)
    taught(lambda: z * 2)
    z.set_(tt.ones(5))
    assert (z * 2).tolist() == [2.0] * 5
    module = tt.nn.Linear(2, 2)
    taught(lambda: module.weight * 1)
    module.double()
    assert (module.weight * 1).dtype == tt.float64


def test_whether_a_gradient_is_asked_for() -> None:
    x = tt.tensor([1.0, 2.0])
    assert not taught(lambda: x * x).requires_grad
    x.requires_grad_()
    assert taught(lambda: x * x).requires_grad
    with tt.no_grad():
        assert not taught(lambda: x * x).requires_grad
        view = taught(lambda: x.view(2, 1))
        assert view.requires_grad
        assert view.grad_fn is None
    with tt.inference_mode():
        assert not (x * x).requires_grad
    x.requires_grad_(False)
    assert not (x * x).requires_grad
    assert taught(lambda: x.view(2, 1))._base is x


def test_views_of_a_base_that_enters_the_graph_later() -> None:
    w = tt.tensor(3.0, requires_grad=True)
    for _ in range(3):
        base = tt.ones(2, 2)
        view, row = base.view(4), base[0]
        base.mul_(w)
        assert view.requires_grad
        assert row.requires_grad
        (g,) = tt.autograd.grad((view * view).sum(), w)
        assert g.item() == 24.0


def test_what_a_node_keeps_is_seen_to_be_overwritten() -> None:
    for _ in range(3):
        x = tt.ones(2, requires_grad=True) * 2
        y = tt.exp(x)
        z = y * 1
        y.add_(1)
        with pytest.raises(tt.errors.GradError, match=r"exp saved its output y, which add_ then overwrote"):
            z.sum().backward()


def test_parts_of_one_call_cannot_be_written() -> None:
    x = tt.ones(4, requires_grad=True) * 1
    for _ in range(3):
        for parts in (x.split(2), x.chunk(2), x.unbind(0)):
            with pytest.raises(tt.errors.GradError, match="is one of several that one call gave"):
                parts[0].mul_(2)


def test_memory_that_is_written_while_it_is_read() -> None:
    for _ in range(3):
        x = tt.arange(6.0)
        x[1:].add_(x[:-1])
        assert x.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0, 9.0]
        y = tt.arange(4.0)
        with pytest.raises(tt.errors.ShapeError, match="shares some of its memory with an input"):
            tt.add(y[1:], y[:-1], out=y[:3])
        assert tt.add(y, y, out=y) is y


# -- what programs set
def test_default_types_and_devices() -> None:
    assert taught(lambda: tt.zeros(2)).dtype == tt.float32
    assert taught(lambda: tt.ones(2, dtype=tt.int64) / 2).dtype == tt.float32
    tt.set_default_dtype(tt.float64)
    try:
        assert tt.zeros(2).dtype == tt.float64
        assert (tt.ones(2, dtype=tt.int64) / 2).dtype == tt.float64
    finally:
        tt.set_default_dtype(tt.float32)
    assert tt.zeros(2).dtype == tt.float32
    with tt.device("meta"):
        assert tt.zeros(2).is_meta
    assert not tt.zeros(2).is_meta
    tt.set_default_device("cuda")
    try:
        assert taught(lambda: tt.zeros(2)).is_cuda
    finally:
        tt.set_default_device("cpu")
    assert tt.zeros(2).is_cpu


def test_plans_of_a_default_type_are_taken_up_when_it_is_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tt.arange(1, 4)

    def halved() -> tt.dtype:
        return (whole / 2).dtype

    try:
        for kind in (tt.float32, tt.float64):
            tt.set_default_dtype(kind)
            assert taught(halved) == kind
        monkeypatch.setattr(doors.Door, "_record", lambda *_: pytest.fail("it is learnt anew"))
        for kind in (tt.float32, tt.float64, tt.float64, tt.float32):
            tt.set_default_dtype(kind)
            assert halved() == kind
        monkeypatch.undo()
        doors.forget()  # drops those of every type
        monkeypatch.setattr(doors, "SEEN_BEFORE", False)
        for kind in (tt.float64, tt.float32):
            tt.set_default_dtype(kind)
            assert not _door_of(tt.Tensor.div).plans
            assert taught(halved) == kind
    finally:
        tt.set_default_dtype(tt.float32)


def test_autocast() -> None:
    x = tt.ones(2, 2)
    assert taught(lambda: x @ x).dtype == tt.float32
    with tt.autocast("cpu", tt.bfloat16):
        assert taught(lambda: x @ x).dtype == tt.bfloat16
        with tt.autocast("cpu", enabled=False):
            assert taught(lambda: x @ x).dtype == tt.float32
        assert (x @ x).dtype == tt.bfloat16
    assert (x @ x).dtype == tt.float32
    assert F.linear(x, x).dtype == tt.float32


def test_hooks_on_saved_tensors_and_anomaly_mode() -> None:
    x = tt.ones(2, requires_grad=True)
    taught(lambda: x * x)
    packed: list[Any] = []
    with tt.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        x * x
    assert len(packed) == 2
    with pytest.warns(UserWarning, match="Anomaly"):
        mode = tt.autograd.detect_anomaly()
    with mode:
        y = x * x
        assert y.grad_fn.metadata


def test_modes_and_subclasses_are_asked() -> None:
    from tritensor.overrides import TorchFunctionMode
    from tritensor.utils._python_dispatch import TorchDispatchMode

    x = tt.ones(2)
    taught(lambda: x + x)
    taught(lambda: tt.exp(x))
    seen: list[str] = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    class Lower(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Own(tt.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append("Own")
            return super().__torch_function__(func, types, args, kwargs)

    with Mode():
        x + x, tt.exp(x)
    assert seen == ["add", "exp"] or len(seen) == 2
    seen.clear()
    with Lower():
        x + x, tt.exp(x)
    assert seen == ["aten.add.Tensor", "aten.exp.default"]
    seen.clear()
    own = x.as_subclass(Own)
    for _ in range(3):
        assert type(tt.exp(own)) is Own
        assert type(own + x) is Own
    assert seen.count("Own") >= 6
    assert type(taught(lambda: x + x)) is tt.Tensor


def test_transforms_see_every_op() -> None:
    x = tt.tensor([1.0, 2.0])
    taught(lambda: (x * x).sum())
    assert tt.func.grad(lambda t: (t * t).sum())(x).tolist() == [2.0, 4.0]
    assert tt.func.vmap(lambda t: t * t)(x).tolist() == [1.0, 4.0]
    assert tt.func.jvp(lambda t: t * t, (x,), (tt.ones(2),))[1].tolist() == [2.0, 4.0]


def test_calls_inside_a_transform_shut_no_door_and_what_they_come_to_is_planned() -> None:
    x = tt.arange(6.0).reshape(2, 3)
    tt.ops.fmod(x, x + 1)
    door = _door_of(tt.ops.fmod)
    door.forget()
    for _ in range(doors.VAIN + 2):
        assert tt.vmap(lambda t: tt.ops.fmod(t, t + 1))(x).tolist() == x.tolist()
    assert not door.shut
    assert list(door.plans)  # of the batch
    held = dataclasses.replace(registry["fmod"], cpu=np.multiply)
    assert dispatch.run_planned(held, (x, x), {}).tolist() == (x * x).tolist()  # of a record that is held, whatever goes by its name


def test_an_op_registered_anew_and_a_function_put_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tt.tensor([1.0, -1.0])
    assert taught(lambda: F.relu(x)).tolist() == [1.0, 0.0]
    layer = tt.nn.ReLU()
    assert taught(lambda: layer(x)).tolist() == [1.0, 0.0]
    monkeypatch.setattr(F, "relu", lambda x, inplace=False: x + 10)
    assert layer(x).tolist() == [11.0, 9.0]
    monkeypatch.setattr(tt.Tensor, "exp", lambda self: "mine")
    assert x.exp() == "mine"


# -- threads and forks
def test_threads_have_their_own_modes() -> None:
    x = tt.ones(2, requires_grad=True)
    found: list[bool] = []

    def work() -> None:
        with tt.no_grad():
            for _ in range(50):
                found.append((x * x).requires_grad)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    mine = [(x * x).requires_grad for _ in range(200)]
    for t in threads:
        t.join()
    assert all(mine)
    assert not any(found)


def test_a_child_forked_while_another_thread_learns() -> None:
    shortcuts.turn("learning", 1)
    try:
        pid = os.fork()
        if not pid:
            x = tt.ones(2)
            os._exit(0 if not doors.OFF and (x + x).tolist() == [2.0, 2.0] and (x + x).tolist() == [2.0, 2.0] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        shortcuts.turn("learning", -1)


def test_functions_can_be_copied_and_pickled_when_their_door_is_open() -> None:
    import pickle

    taught(lambda: tt.exp(tt.ones(2)))
    assert pickle.loads(pickle.dumps(tt.exp)) is tt.exp
    assert copy.deepcopy(tt.exp) is tt.exp
    assert "exp" in tt.exp.__name__


def test_a_door_shows_the_functions_signature_before_and_after_it_has_learnt() -> None:
    for f, shown in ((tt.Tensor.__rsub__, "(self, other)"), (tt.Tensor.__add__, "(self, other)"), (tt.Tensor.__iadd__, "(self, other)")):
        for _ in range(2):
            assert [str(p).split(":")[0] for p in inspect.signature(f).parameters.values()] == shown.strip("()").split(", ")
            _ = tt.ones(2) + tt.ones(2), 1 - tt.ones(2)
            x = tt.ones(2)
            x += 1
