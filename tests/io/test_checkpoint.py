"""tritensor.save and load: state dicts as plain safetensors, optimizer states with their numbers, other objects pickled beside them, or refused by place."""

from __future__ import annotations

import argparse
import io
import math
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import tritensor as tt
from tritensor.ground.errors import CheckpointError
from tritensor.io import save_file
from tritensor.io.structure import unpack


def equal(a: Any, b: Any) -> bool:
    """Whether two nests agree in structure, types and values."""
    if isinstance(a, tt.Tensor):
        return isinstance(b, tt.Tensor) and a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and a == b


NESTS = [
    tt.tensor([1.0, 2.0]),
    {},
    [],
    None,
    3,
    {"w": tt.tensor([[1, 2], [3, 4]]), "b": tt.tensor(1.5, dtype=tt.bfloat16)},
    {
        "state": {0: {"step": 3, "exp_avg": tt.zeros(3)}, 1: {"step": 4, "exp_avg": tt.ones(2)}},
        "param_groups": [{"lr": 0.1, "betas": (0.9, 0.999), "params": [0, 1]}],
    },
    {"a.b": tt.zeros(1), "a": {"b": tt.ones(1)}},
    {"__metadata__": tt.ones(1), "x": 1},
    [math.inf, -math.inf, math.nan, True, None, 'text with " and \u2713', (1, (2, [3]))],
    {None: 1, True: 2, "": tt.ones(2)},
]


@pytest.mark.parametrize("nest", NESTS, ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("where", ["path", "buffer"])
def test_a_nest_comes_back(nest: Any, where: str, tmp_path: Path) -> None:
    if where == "path":
        tt.save(nest, tmp_path / "x")
        assert equal(nest, tt.load(tmp_path / "x"))
    else:
        buffer = io.BytesIO()
        tt.save(nest, buffer, format="safetensors")
        buffer.seek(0)
        assert equal(nest, tt.load(buffer))


def test_a_state_dict_is_a_plain_safetensors_file(tmp_path: Path) -> None:
    model = tt.nn.Sequential(tt.nn.Linear(3, 4), tt.nn.Linear(4, 2))
    tt.save(model.state_dict(), tmp_path / "x.safetensors")
    found = safetensors.numpy.load_file(tmp_path / "x.safetensors")
    assert sorted(found) == sorted(model.state_dict())
    np.testing.assert_array_equal(found["1.bias"], model[1].bias.detach().numpy())


def test_a_model_and_its_optimizer_go_on_where_they_were(tmp_path: Path) -> None:
    x, y = tt.randn(8, 3), tt.randn(8, 2)

    def fresh() -> tuple[Any, Any]:
        tt.manual_seed(1)
        model = tt.nn.Linear(3, 2)
        return model, tt.optim.AdamW(model.parameters(), lr=0.1)

    def steps(model: Any, optimizer: Any, n: int) -> list[float]:
        losses = []
        for _ in range(n):
            optimizer.zero_grad()
            loss = tt.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    model, optimizer = fresh()
    whole = steps(model, optimizer, 6)
    model, optimizer = fresh()
    steps(model, optimizer, 3)
    tt.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, tmp_path / "x")
    model, optimizer = fresh()
    found = tt.load(tmp_path / "x")
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    assert found["epoch"] == 3
    assert steps(model, optimizer, 3) == whole[3:]


def test_values_only(tmp_path: Path) -> None:
    w = tt.nn.Parameter(tt.ones(2))
    tt.save(OrderedDict(w=w, n=np.float32(1.5), k=np.int64(3)), tmp_path / "x")
    found = tt.load(tmp_path / "x", weights_only=True)
    assert type(found["w"]) is tt.Tensor
    assert not found["w"].requires_grad
    assert (found["n"], found["k"]) == (1.5, 3)


@pytest.mark.parametrize(
    "where", ["cuda", "cuda:0", tt.device("cuda"), {"cpu": "cuda"}, lambda t, on: t.to("cuda"), lambda t, on: t.cuda(0)]
)
def test_map_location_to_the_device(where: Any, tmp_path: Path) -> None:
    tt.save({"x": tt.ones(3), "deep": [tt.zeros(2)]}, tmp_path / "x")
    found = tt.load(tmp_path / "x", map_location=where)
    assert found["x"].device.type == found["deep"][0].device.type == "cuda"


@pytest.mark.parametrize("where", [None, "cpu", {"cuda:0": "cuda"}, lambda t, on: t, lambda t, on: None])
def test_map_location_that_leaves_it_on_the_cpu(where: Any, tmp_path: Path) -> None:
    tt.save({"x": tt.ones(3, device="cuda")}, tmp_path / "x")
    assert tt.load(tmp_path / "x", map_location=where)["x"].device.type == "cpu"


class Unsaved(tt.nn.Module):
    """Holds what cannot be written."""

    def __init__(self) -> None:
        super().__init__()
        self.make = lambda: 0


class Tied(tt.nn.Module):
    """Two layers of one weight, statistics, and a part that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.norm = tt.nn.Linear(3, 3), tt.nn.Linear(3, 3), tt.nn.BatchNorm1d(3)
        self.b.weight = self.a.weight
        self.b.bias.requires_grad_(False)
        self.a.weight.no_decay = True  # type: ignore[attr-defined]

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        return self.norm(self.b(self.a(x)))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_whole_module_comes_back_where_it_is_asked_for(device: str, tmp_path: Path) -> None:
    model, x = Tied().to(device), tt.randn(4, 3, device=device)
    optimizer = tt.optim.Adam(model.parameters())
    model(x).sum().backward()
    optimizer.step()
    tt.save({"model": model.eval(), "optimizer": optimizer, "args": argparse.Namespace(lr=0.1)}, tmp_path / "x")
    with pytest.raises(CheckpointError, match="runs code from the file; if you trust it, load\\(f, weights_only=False\\)"):
        tt.load(tmp_path / "x")
    found = tt.load(tmp_path / "x", map_location=device, weights_only=False)
    again = found["model"]
    assert found["args"] == argparse.Namespace(lr=0.1)
    assert again(x).tolist() == model(x).tolist()
    assert again.a.weight is again.b.weight is found["optimizer"].param_groups[0]["params"][0]
    assert type(again.a.weight) is tt.nn.Parameter
    assert again.a.weight.no_decay
    assert (again.a.bias.requires_grad, again.b.bias.requires_grad) == (True, False)
    again(x).sum().backward()
    assert again.a.weight.grad is not None


def test_classes_that_the_user_calls_safe(tmp_path: Path) -> None:
    from tritensor.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

    model = tt.nn.Sequential(Tied(), tt.nn.Linear(3, 1))
    tt.save(model, tmp_path / "x")
    layers = [Tied, tt.nn.Sequential, tt.nn.modules.linear.Linear, tt.nn.BatchNorm1d]
    with pytest.raises(CheckpointError, match=r"such as .*Sequential, whose reading"):
        tt.load(tmp_path / "x")
    with safe_globals(layers):
        again = tt.load(tmp_path / "x")
    assert again[1].weight.tolist() == model[1].weight.tolist()
    with safe_globals(layers[:-1]), pytest.raises(CheckpointError, match=r"such as .*BatchNorm1d, .*add_safe_globals"):
        tt.load(tmp_path / "x")
    assert get_safe_globals() == []
    add_safe_globals([os.getcwd])  # never: it is the system's
    tt.save([print, os.getcwd], tmp_path / "x")
    with safe_globals([print]), pytest.raises(CheckpointError, match="getcwd"):
        tt.load(tmp_path / "x")
    clear_safe_globals()
    assert get_safe_globals() == []


@pytest.mark.parametrize(
    "nest", [{"x": np.arange(3.0)}, {"a": [1, print]}, tt.nn.Linear, {"z": tt.ones(2, dtype=tt.complex128), "k": np.ones(2)}], ids=str
)
def test_objects_beside_values(nest: Any) -> None:
    file = io.BytesIO()
    tt.save(nest, file, format="safetensors")
    file.seek(0)
    assert repr(tt.load(file, weights_only=False)) == repr(nest)


@pytest.mark.parametrize(
    ("nest", "message"),
    [
        ({"a": [1, lambda: 0]}, "a.1 is a function.*and pickle cannot take it either"),
        ({"model": tt.nn.Sequential(Unsaved())}, "model is a Sequential.*save its state_dict.*and pickle cannot take it either"),
        ({"lock": threading.Lock()}, "lock is a lock"),
    ],
)
def test_what_no_checkpoint_holds_is_named_with_its_place(nest: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=message):
        tt.save(nest, tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "structure", ["{", "{}", '{"$tensor": "gone"}', '{"$dict": 3}', '{"$dict": [1]}', '{"$code": "os.system"}', '{"$tensor": ["x"]}']
)
def test_a_structure_that_does_not_fit_its_tensors(structure: str, tmp_path: Path) -> None:
    save_file({"x": tt.ones(2)}, tmp_path / "weights", {"tritensor": structure})
    with pytest.raises(CheckpointError, match=r"weights: .*does not describe these tensors"):
        tt.load(tmp_path / "weights")


def test_a_torn_buffer_is_named() -> None:
    buffer = io.BytesIO()
    tt.save({"x": tt.ones(100)}, buffer, format="safetensors")
    with pytest.raises(CheckpointError, match="BytesIO: the header tells of 400 bytes of data and 300 are there"):
        tt.load(io.BytesIO(buffer.getvalue()[:-100]))


def test_the_versions_of_a_state_dict_are_kept(tmp_path: Path) -> None:
    model = tt.nn.Sequential(tt.nn.Linear(2, 2), tt.nn.Linear(2, 1))
    state = model.state_dict()
    nest = {"model": state, "again": state, "plain": OrderedDict(state)}
    tt.save(nest, tmp_path / "x")
    found = tt.load(tmp_path / "x")
    assert found["model"] is found["again"]
    assert type(found["model"]) is type(found["model"]._metadata) is OrderedDict
    assert found["model"]._metadata == state._metadata
    assert not hasattr(found["plain"], "_metadata")
    model.load_state_dict(found["model"])
    tt.save(state, tmp_path / "y")
    assert tt.load(tmp_path / "y")._metadata == state._metadata
    assert sorted(tt.io.load_file(tmp_path / "y")) == sorted(state)


def test_versions_that_are_none(tmp_path: Path) -> None:
    state: Any = OrderedDict(a=tt.ones(1))
    state._metadata = 3  # another program's attribute: not a state_dict's
    tt.save(state, tmp_path / "x")
    assert not hasattr(tt.load(tmp_path / "x"), "_metadata")
    with pytest.raises(ValueError, match="a list stands where a state_dict's versions should"):
        unpack('[{"at":0},["state_dict",{"at":1}],["list"]]', {})


class Sparing(io.RawIOBase):
    """Takes 1000 bytes at a time, `most` in all."""

    def __init__(self, most: int) -> None:
        self.content, self.most = b"", most

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int | None:
        taken = bytes(data[: min(1000, self.most - len(self.content))])
        self.content += taken
        return len(taken) or None


def test_an_open_file_can_be_read_by_its_name(tmp_path: Path) -> None:
    with open(tmp_path / "x.pt", "wb") as file:
        tt.save({"x": tt.arange(3.0)}, file)
        assert tt.load(tmp_path / "x.pt")["x"].tolist() == [0, 1, 2]


class Terse(io.BytesIO):
    """Says nothing of where seek() went, as a library's own file may."""

    def seek(self, *where: int) -> Any:
        super().seek(*where)


def test_a_file_whose_seek_returns_nothing() -> None:
    file = io.BytesIO()
    tt.save({"x": tt.arange(3.0)}, file)
    assert tt.load(Terse(file.getvalue()))["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("format", ["torch", "torch-legacy", "safetensors"])
def test_a_file_that_takes_a_part_at_a_time_gets_all(format: str) -> None:
    file = Sparing(1 << 20)
    tt.save({"x": tt.arange(5000.0)}, file, format=format)
    assert tt.equal(tt.load(io.BytesIO(file.content))["x"], tt.arange(5000.0))
    with pytest.raises(BlockingIOError, match=r"save: the file takes nothing now; \d+ bytes are left"):
        tt.save({"x": tt.arange(5000.0)}, Sparing(9000), format=format)
