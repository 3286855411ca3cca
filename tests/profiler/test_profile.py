"""The profile of a program on the CPU: what is written down, how it nests, and that everything is as it was when it is over."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.autograd import engine
from tritensor.autograd import walk as walk_module
from tritensor.dispatch.plans import doors
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn.module import Module
from tritensor.ops.table import ops
from tritensor.ops.table.lookup import Ops
from tritensor.profiler import ProfilerActivity, profile, record_function
from tritensor.tensor.aliasing import inplace

CPU = [ProfilerActivity.CPU]


def model() -> nn.Sequential:
    tt.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))


def names(prof: profile) -> Counter[str]:
    return Counter({e.key: e.count for e in prof.key_averages()})


def one(prof: profile, name: str) -> Any:
    found = [e for e in prof.events() if e.name == name]
    assert len(found) == 1, f"{len(found)} events {name}"
    return found[0]


def test_a_training_step() -> None:
    net, x = model(), tt.randn(3, 8)
    opt = tt.optim.SGD(net.parameters(), lr=0.1)
    data = tt.utils.data.DataLoader(tt.utils.data.TensorDataset(tt.randn(6, 8)), batch_size=3)
    with profile(activities=CPU) as prof:
        for (x,) in data:
            with record_function("forward"):
                loss = net(x).sum()
            loss.backward()
            opt.step()
            opt.zero_grad()
    assert names(prof) == {
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": 3, "index_get": 2, "forward": 2, "linear": 4, "relu": 2, "sum": 2,
        "SumBackward0": 2, "AddmmBackward0": 4, "ReluBackward0": 2, "AccumulateGrad": 8, "Optimizer.step#SGD.step": 2,
        "Optimizer.zero_grad#SGD.zero_grad": 2,
    }  # fmt: skip


def test_calls_nest_and_self_times_add_up() -> None:
    net, x = model(), tt.randn(3, 8)
    with profile(activities=CPU) as prof, record_function("outer"), record_function("inner"):
        net(x)
    outer, inner = one(prof, "outer"), one(prof, "inner")
    assert inner.cpu_parent is outer
    assert outer.cpu_parent is None
    assert [e.name for e in inner.cpu_children] == ["linear", "relu", "linear"]
    for e in prof.events():
        assert e.time_range.start <= e.time_range.end
        assert e.self_cpu_time_total >= 0
        for child in e.cpu_children:
            assert e.time_range.start <= child.time_range.start
            assert child.time_range.end <= e.time_range.end
    whole = sum(e.self_cpu_time_total for e in prof.events())
    assert whole == pytest.approx(outer.cpu_time_total)
    assert prof.key_averages().self_cpu_time_total == pytest.approx(whole)


def test_backward_is_joined_to_forward() -> None:
    x, w = tt.randn(3, 8), tt.randn(2, 8, requires_grad=True)
    with profile(activities=CPU) as prof:
        y = tt.nn.functional.linear(x, w)
        z = (y * 2).exp().sum()
        z.backward()
    pairs = {e.name: e.forward.name for e in prof.events() if e.forward is not None}
    assert pairs == {"SumBackward0": "sum", "ExpBackward0": "exp", "MulBackward0": "mul", "MmBackward0": "linear"}
    assert all(e.sequence_nr == e.forward.sequence_nr > 0 for e in prof.events() if e.forward is not None)


def test_every_way_to_call_an_op_is_seen_once() -> None:
    x, y = tt.rand(3, 4), tt.rand(3, 4)
    with profile(activities=CPU) as prof:
        x + y, tt.add(x, y), x.add(y), x - 1.0, 1.0 - x, x @ y.T, x == y, -x, x.sum(), x.mean(0), tt.amax(x)
        x.reshape(4, 3), x.view(-1), x.permute(1, 0), x[0], x.unsqueeze(0), x.expand(2, 3, 4)
        z = x.clone()
        z += y
        z.mul_(2.0)
        z.zero_()
        tt.zeros(3)
    found = names(prof)
    wanted = {
        "add": 3,
        "sub": 2,
        "matmul": 1,
        "eq": 1,
        "neg": 1,
        "sum": 1,
        "mean": 1,
        "amax": 1,
        "index_view": 1,
        "expand": 1,
        "copy": 1,
        "add_": 1,
        "mul_": 1,
    }
    assert {k: found[k] for k in wanted} == wanted
    assert found["reshape"] == 3
    assert found["permute"] == 2
    assert found["zero_"] == 1
    assert found["full"] == 1


def put_in_place() -> list[Any]:
    """What probes stand in the place of."""
    from tritensor.autograd.function import Function
    from tritensor.data.loader import DataLoader

    places: list[Any] = [
        dict(vars(ops)),
        Ops.__getattr__,
        doors.OFF,
        walk_module.walk_arrays,
        walk_module.pull_node,
        engine.accumulate,
    ]
    places += [
        inplace.compute_into,
        inplace._fill_directly,
        vars(Function)["apply"],
        DataLoader.__iter__,
        Module.__call__,
    ]
    return [*places, vars(tt.optim.SGD).get("step"), vars(tt.optim.Optimizer)["step"], vars(tt.optim.Optimizer)["zero_grad"]]


def test_everything_is_as_it_was() -> None:
    net, x = model(), tt.randn(3, 8)
    x + x, x @ x.T, x == x, tt.sigmoid(x), net(x).sum().backward()
    before = put_in_place()
    with profile(activities=CPU, with_modules=True, record_shapes=True):
        net(x).sum().backward()
        assert put_in_place() != before
    assert put_in_place() == before
    with pytest.raises(ShapeError), profile(activities=CPU) as prof:
        tt.nn.functional.linear(tt.zeros(2, 3), tt.zeros(2, 4))
    assert put_in_place() == before
    assert names(prof) == {"full": 2, "linear": 1}


def test_two_that_overlap_leave_nothing() -> None:
    from tritensor.utils.flop_counter import FlopCounterMode

    net, x = model(), tt.randn(3, 8)
    x + x, x @ x.T, x == x, tt.sigmoid(x), net(x).sum().backward()
    before = put_in_place()
    prof, counter = profile(activities=CPU, with_modules=True), FlopCounterMode(display=False)
    prof.start()
    counter.__enter__()
    net(x)
    prof.stop()
    (net(x) + 1).sum().backward()
    counter.__exit__(None, None, None)
    assert [(a, b) for a, b in zip(put_in_place()[1:], before[1:], strict=True) if a != b] == []
    assert [n for n, call in vars(ops).items() if "profiled" in vars(call)] == []
    assert names(prof)["linear"] == 2
    assert counter.get_flop_counts()["Global"]["linear"] == 2 * 2 * (3 * 8 * 4 + 3 * 4 * 2)


def test_autocast_that_begins_inside_lasts() -> None:
    x, w = tt.randn(2, 3), tt.randn(4, 3)
    with profile(activities=CPU) as prof, tt.autocast("cpu"):
        assert tt.nn.functional.linear(x, w).dtype == tt.bfloat16
    assert names(prof)["linear"] == 1
    with tt.autocast("cpu"):
        assert tt.nn.functional.linear(x, w).dtype == tt.bfloat16
    assert tt.nn.functional.linear(x, w).dtype == tt.float32
    with profile(activities=CPU) as prof, tt.autocast("cpu"):
        tt.nn.functional.linear(x, w)
    assert names(prof)["linear"] == 1


def test_nothing_is_kept_alive() -> None:
    class Held(tt.Tensor):
        pass

    with profile(activities=CPU, record_shapes=True, with_stack=True) as prof:
        x = tt.randn(100, requires_grad=True)
        y = x * 2
        y.sum().backward()
        node = weakref.ref(y.grad_fn)
        del y
        gc.collect()
        assert node() is None
    assert one(prof, "MulBackward0").forward.input_shapes == [[100], []]


def test_all_threads_are_seen_each_by_itself() -> None:
    net = model()
    start = threading.Barrier(3)

    def work(name: str) -> None:
        start.wait()
        for _ in range(20):
            with record_function(name):
                net(tt.randn(3, 8)).sum().backward()

    threads = [threading.Thread(target=work, args=(f"worker {i}",), name=f"worker {i}") for i in range(2)]
    with profile(activities=CPU) as prof:
        for t in threads:
            t.start()
        start.wait()
        for t in threads:
            t.join()
    rows: dict[int, set[str]] = {}
    for e in prof.events():
        rows.setdefault(e.thread, set()).add(e.name)
        assert e.cpu_parent is None or e.cpu_parent.thread == e.thread
    assert len(rows) == 2
    assert all(len({n for n in found if n.startswith("worker")}) == 1 for found in rows.values())
    assert names(prof)["linear"] == 80


def test_modules_by_their_path() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.rest = nn.Linear(8, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2))

        def forward(self, x: tt.Tensor) -> tt.Tensor:
            return self.rest(self.first(x))  # type: ignore[no-any-return]

    with profile(activities=CPU, with_modules=True) as prof:
        Net()(tt.randn(3, 8)).sum().backward()
    found = [e.name for e in prof.events() if e.kind == "module"]
    assert found == [
        "nn.Module: Net", "nn.Module: Net.first (Linear)", "nn.Module: Net.rest (Sequential)", "nn.Module: Net.rest.0 (ReLU)",
        "nn.Module: Net.rest.1 (Linear)",
    ]  # fmt: skip
    where = {(e.name, e.module) for e in prof.events() if e.kind != "module"}
    assert ("linear", "Net.first") in where
    assert ("AddmmBackward0", "Net.rest.1") in where
    assert ("sum", "") in where


def test_shapes_and_their_groups() -> None:
    with profile(activities=CPU, record_shapes=True) as prof:
        for n in (2, 2, 3):
            tt.cat([tt.ones(n, 4), tt.ones(1, 4)])
            tt.ones(n, 4) * 2.0
    by_shape = {(e.key, str(e.input_shapes)): e.count for e in prof.key_averages(group_by_input_shape=True)}
    assert by_shape["cat", "[[2, 4], [1, 4]]"] == 2
    assert by_shape["cat", "[[3, 4], [1, 4]]"] == 1
    assert by_shape["mul", "[[2, 4], []]"] == 2
    assert next(e for e in prof.events() if e.name == "mul").concrete_inputs == ["", 2.0]


def test_stacks_name_the_program() -> None:
    with profile(activities=CPU, with_stack=True) as prof:
        tt.ones(3).exp()
        tt.ones(3).exp()
    event = next(e for e in prof.events() if e.name == "exp")
    assert "test_profile.py" in event.stack[0]
    assert event.stack[0].endswith(": test_stacks_name_the_program")
    assert [e.count for e in prof.key_averages(group_by_stack_n=1) if e.key == "exp"] == [1, 1]
    assert [e.count for e in prof.key_averages() if e.key == "exp"] == [2]


def test_memory_of_a_call() -> None:
    n = 250_000
    with profile(activities=CPU, profile_memory=True) as prof:
        x = tt.ones(n)
        with record_function("made and dropped"):
            y = x.exp()
            del y
        with record_function("kept"):
            z = x.exp()
    calls = {e.name: e for e in prof.events() if e.kind == "user_annotation"}
    exps = [e for e in prof.events() if e.name == "exp"]
    assert [round(e.cpu_memory_usage / (4 * n), 2) for e in exps] == [1, 1]
    assert abs(calls["made and dropped"].cpu_memory_usage) < 4 * n // 10
    assert calls["kept"].cpu_memory_usage == pytest.approx(4 * n, rel=0.01)
    assert abs(calls["kept"].self_cpu_memory_usage) < 4 * n // 10
    del z


def test_second_order_hooks_and_functions() -> None:
    class Double(tt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
            return g * 2

    x = tt.rand(3, requires_grad=True)
    with profile(activities=CPU) as prof:
        y = Double.apply(x).exp()
        (g,) = tt.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()
    found = names(prof)
    assert found["Double"] == 1
    assert found["DoubleBackward"] == 2
    assert found["ExpBackward0"] >= 2
    assert one(prof, "Double").cpu_children[0].name == "mul"
    inner = next(e for e in prof.events() if e.name == "ExpBackward0")
    assert [c.name for c in inner.cpu_children] == ["mul"], "with create_graph the rule runs op by op"


def test_a_function_that_returns_a_tuple_of_one() -> None:
    """As the gate of a full backward hook does: its result hangs at the node itself, whose first input may want no gradient."""

    class Pair(tt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, scale: float, x: tt.Tensor) -> tuple[tt.Tensor]:
            return (x * scale,)

        @staticmethod
        def backward(ctx: Any, g: tt.Tensor) -> tuple[None, tt.Tensor]:
            return None, g

    hooked, x = model(), tt.ones(3, 8)
    hooked[1].register_full_backward_hook(lambda module, gave, got: (gave[0] * 2,))
    with profile(activities=CPU) as prof:
        hooked(x).sum().backward()
        (y,) = Pair.apply(2.0, tt.ones(2, requires_grad=True))
    assert y.grad_fn is not None
    assert one(prof, "Pair").sequence_nr == y._node.sequence
    assert names(prof)["ReluBackward0"] == 1


def test_one_profile_inside_another_is_refused() -> None:
    with profile(activities=CPU) as outer:
        inner = profile(activities=CPU)
        with pytest.raises(RuntimeError, match="another profile is running"):
            inner.start()
        tt.ones(2).exp()
    assert names(outer)["exp"] == 1
    with profile(activities=CPU) as again:
        tt.ones(2).exp()
    assert names(again)["exp"] == 1


def test_mistakes() -> None:
    with pytest.raises(ArgumentError, match="activities is empty"):
        profile(activities=[])
    with pytest.raises(ArgumentError, match="give ProfilerActivity"):
        profile(activities=["cpu"])
    with pytest.raises(ArgumentError, match="XPU"):
        profile(activities=[ProfilerActivity.XPU])
    prof = profile(activities=CPU)
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        prof.events()
    with pytest.raises(RuntimeError, match="does not run"):
        prof.step()
    with prof:
        with pytest.raises(RuntimeError, match="still runs"):
            prof.key_averages()
        with pytest.raises(RuntimeError, match="runs already"):
            prof.start()
    with pytest.raises(TypeError, match="the name is a int"):
        record_function(3)  # type: ignore[arg-type]


def test_collection_is_switched_off_and_on() -> None:
    with profile(activities=CPU) as prof:
        tt.ones(2).exp()
        prof.toggle_collection_dynamic(False, CPU)
        tt.ones(2).sin()
        prof.toggle_collection_dynamic(True, CPU)
        tt.ones(2).cos()
    assert {"exp", "cos"} <= set(names(prof))
    assert "sin" not in names(prof)


def test_a_range_decorates() -> None:
    @record_function("double", "by two")
    def double(x: int) -> int:
        return 2 * x

    assert double(2) == 4
    with profile(activities=CPU) as prof:
        assert double(3) == 6
    assert names(prof) == {"double (by two)": 1}
