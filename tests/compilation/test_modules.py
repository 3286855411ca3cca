"""OptimizedModule, and modules compiled in place."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn
from tritensor.compilation.optimized_module import OptimizedModule
from tritensor.ops.lazy_array import LazyArray


class Scaled(nn.Module):
    """A module with an attribute, a buffer and a method of its own."""

    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()
        self.factor = factor
        self.weight = nn.Parameter(tt.ones(3))
        self.register_buffer("seen", tt.zeros(()))

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        self.seen += 1
        return x * self.weight * self.factor

    def doubled(self) -> float:
        return self.factor * 2


def test_names() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    compiled = tt.compile(model)
    assert type(compiled) is OptimizedModule
    assert isinstance(compiled, tt._dynamo.eval_frame.OptimizedModule)
    assert compiled._orig_mod is model
    assert list(compiled.state_dict()) == [f"_orig_mod.{k}" for k in model.state_dict()]
    assert [n for n, _ in compiled.named_parameters()] == [f"_orig_mod.{n}" for n, _ in model.named_parameters()]
    assert [n for n, _ in compiled.named_children()] == ["_orig_mod"]
    assert len(compiled) == 2
    assert repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Sequential(")
    again = tt.compile(compiled)
    assert again._orig_mod is model
    with pytest.raises(TypeError, match=r"Scaled does not support len\(\)"):
        len(tt.compile(Scaled()))


def test_attributes_are_the_modules() -> None:
    model = Scaled()
    compiled = tt.compile(model)
    assert (compiled.factor, compiled.doubled()) == (2, 4)
    compiled.factor = 5.0
    assert (model.factor, compiled(tt.ones(3)).tolist()) == (5, [5, 5, 5])
    compiled.extra = "more"
    assert model.extra == "more"
    del compiled.extra
    assert not hasattr(model, "extra")
    assert "doubled" in dir(compiled)
    with pytest.raises(AttributeError, match="'Scaled' object has no attribute 'missing'"):
        compiled.missing  # noqa: B018
    assert model.seen.item() == 1


def test_modes_are_the_modules() -> None:
    model = nn.Sequential(nn.Dropout(0.5))
    compiled = tt.compile(model)
    assert compiled.training
    assert compiled.eval() is compiled
    assert (model.training, model[0].training, compiled.training) == (False, False, False)
    model.train()
    assert compiled.training


def test_hooks_inside_and_around() -> None:
    model = nn.Linear(2, 2)
    compiled = tt.compile(model)
    seen: list[str] = []
    compiled.register_forward_hook(lambda m, a, y: seen.append(f"around {type(m).__name__}"))
    model.register_forward_hook(lambda m, a, y: seen.append(f"inside {type(m).__name__} {type(y._array).__name__}"))
    with tt.no_grad():
        compiled(tt.ones(1, 2))
    assert seen == ["inside Linear LazyArray", "around OptimizedModule"]
    assert (len(compiled._forward_hooks), len(model._forward_hooks)) == (1, 1)


def test_copies_and_files() -> None:
    compiled = tt.compile(Scaled(3.0))
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert type(other) is OptimizedModule
        assert other._orig_mod is not compiled._orig_mod
        assert other(tt.ones(3)).tolist() == [3, 3, 3]
    state = {k: v + 1 for k, v in compiled.state_dict().items()}
    compiled.load_state_dict(state)
    assert compiled.weight.tolist() == [2, 2, 2]


def test_moving_and_walking() -> None:
    compiled = tt.compile(nn.Linear(2, 2))
    assert compiled.double() is compiled
    assert compiled._orig_mod.weight.dtype is tt.float64
    compiled.requires_grad_(False)
    assert not any(p.requires_grad for p in compiled.parameters())


def test_a_shallow_copy_of_one_that_is_compiled_in_place_is_called_itself() -> None:
    model = Scaled()
    model.compile()
    other = copy.copy(model)
    other.factor = 7.0
    assert (model(tt.ones(3)).tolist(), other(tt.ones(3)).tolist()) == ([2, 2, 2], [7, 7, 7])


def test_a_class_of_modules_is_compiled_by_a_decorator() -> None:
    @tt.compile
    class Added(nn.Module):
        def forward(self, x: tt.Tensor) -> tt.Tensor:
            seen.append(type((x + 1)._array))
            return x + 1

    seen: list[Any] = []
    assert Added()(tt.ones(1)).item() == 2
    assert seen == [LazyArray]
    assert isinstance(Added(), nn.Module)


def test_lazy_layers_are_filled_by_the_first_call() -> None:
    compiled = tt.compile(nn.LazyLinear(3))
    assert compiled(tt.ones(2, 5)).shape == (2, 3)
    assert compiled.weight.shape == (3, 5)


def test_data_parallel_and_ddp() -> None:
    inner = nn.Linear(3, 3)
    assert nn.DataParallel(tt.compile(inner))(tt.ones(2, 3)).shape == (2, 3)
    tt.distributed.init_process_group("gloo", rank=0, world_size=1)
    try:
        found = []
        for make in (
            lambda m: m,
            lambda m: nn.parallel.DistributedDataParallel(tt.compile(m)),
            lambda m: tt.compile(nn.parallel.DistributedDataParallel(m)),
        ):
            model = make(inner)
            inner.zero_grad()
            model(tt.ones(2, 3)).sum().backward()
            found.append([p.grad.tolist() for p in inner.parameters()])
    finally:
        tt.distributed.destroy_process_group()
    assert found[0] == found[1] == found[2]
