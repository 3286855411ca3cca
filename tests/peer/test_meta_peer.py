"""Device meta is PyTorch's: its sample database on meta, and what of tensors and modules has no sample there."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import tritensor as tt
from tests.loops import each
from tests.peer.opinfo.meta import walk_meta
from tests.peer.opinfo.resolve import key

pytestmark = pytest.mark.peer

# Entries that we answer otherwise, and why.
OTHERWISE = {
    "as_strided/partial_views": "PyTorch does not look on meta whether a window lies in its memory; we do, as on the CPU in both",
    "native_batch_norm": "in evaluation PyTorch's statistics have no elements on the CPU and the channels' number on meta; ours are as on the CPU",
    "_native_batch_norm_legit": "as native_batch_norm",
}


@pytest.mark.parametrize("op", op_db, ids=key)
def test_the_sample_database(op: Any) -> None:
    torch.set_num_threads(1)
    found = walk_meta(op)
    if key(op) in OTHERWISE:
        assert found.failures, "it agrees: strike it out"
    else:
        assert not found.failures, "\n".join(found.failures)


def test_a_wrong_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    op = next(o for o in op_db if key(o) == "sin")
    assert walk_meta(op).gradients > 0
    sin = tt.sin

    def turned(x: tt.Tensor) -> tt.Tensor:
        return sin(x).t().contiguous().t() if x.is_meta and x.ndim == 2 else sin(x)

    for wrong in (lambda x: sin(x).double(), lambda x: sin(x)[None], lambda x: sin(x).tolist(), turned):
        monkeypatch.setattr(tt, "sin", wrong)
        assert walk_meta(op).failures


def _told(T: Any, x: Any) -> Any:
    if isinstance(x, T.Tensor):
        return tuple(x.shape), x.stride(), str(x.dtype).rpartition(".")[2], x.device.type, x.storage_offset(), x.requires_grad
    if isinstance(x, tuple | list):
        return [_told(T, v) for v in x]
    if isinstance(x, T.device):
        return x.type
    return x.replace(f"{T.__name__}.", "") if isinstance(x, str) else x


def _saved(T: Any, x: Any, **options: Any) -> Any:
    file = io.BytesIO()
    T.save(x, file)
    file.seek(0)
    return T.load(file, **options)


def _x(T: Any) -> Any:
    return T.empty(2, 3, device="meta")


def _built(T: Any, device: Any) -> Any:
    nn = T.nn
    return nn.Sequential(nn.Linear(3, 4, device=device), nn.BatchNorm1d(4, device=device), nn.Linear(4, 2, device=device))


def _loaded(T: Any, **options: Any) -> Any:
    net = _built(T, "meta")
    net.load_state_dict(_built(T, "cpu").state_dict(), **options)
    return list(net.state_dict().values()), net[0].weight.requires_grad, type(net[0].weight).__name__


def _emptied(T: Any) -> Any:
    net = _built(T, "meta")
    before = net[0].weight
    net.to_empty(device="cpu")
    return list(net.parameters()), net[0].weight is before


def _on_meta(T: Any) -> Any:
    net = _built(T, "cpu")
    before = net[0].weight
    net.to("meta")
    return list(net.parameters()), net[0].weight is before


def _inside(T: Any) -> Any:
    with T.device("meta"):
        return (
            T.ones(2), T.tensor([1.0]), T.arange(3), T.zeros_like(T.ones(2, device="cpu")), T.as_tensor([1]), T.from_numpy(np.ones(2)), T.eye(2),
            T.hann_window(4), T.nn.Linear(2, 2).weight, T.rand(2), T.full((2,), 1.0), T.scalar_tensor(1.0), T.get_default_device(),
        )  # fmt: skip


def _stepped(T: Any, name: str) -> Any:
    net = _built(T, "meta")
    optimizer = getattr(T.optim, name)(net.parameters(), lr=0.1)
    net(T.ones(5, 3, device="meta")).sum().backward()
    optimizer.step()
    return sorted((k, v.device.type, tuple(v.shape)) for k, v in optimizer.state[net[0].weight].items() if isinstance(v, T.Tensor))


def _written(T: Any) -> Any:
    x = T.ones(3, 4, device="meta", requires_grad=True)
    y = x * 1
    y[0] = 0
    y[:, 1].mul_(2)
    y.t().add_(1)
    y[y > 0] = 3.0
    (y.sum() + x[1].sum()).backward()
    return x.grad, y._version


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "repr": lambda T: repr(_x(T)),
    "repr of a parameter": lambda T: repr(T.nn.Parameter(_x(T))),
    "repr of another type": lambda T: repr(_x(T).long()),
    "repr in a graph": lambda T: repr(_x(T).requires_grad_() * 2),
    "repr without elements": lambda T: repr(T.empty(0, device="meta")),
    "a form": lambda T: f"{_x(T).sum()}",
    "type": lambda T: _x(T).type(),
    "copy_ from the CPU": lambda T: _x(T).copy_(T.ones(3)),
    "to": lambda T: T.ones(3, 2).t().to("meta"),
    "to of a type": lambda T: _x(T).to(T.float64),
    "addresses": lambda T: (_x(T).data_ptr(), _x(T)[1:].data_ptr(), _x(T).untyped_storage().nbytes(), _x(T).untyped_storage().data_ptr()),
    "deepcopy": lambda T: copy.deepcopy(_x(T).t()),
    "pickle": lambda T: pickle.loads(pickle.dumps(_x(T))),
    "saved": lambda T: _saved(T, _x(T)),
    "saved, a view": lambda T: _saved(T, _x(T).t()[1:]),
    "saved, a parameter": lambda T: _saved(T, T.nn.Parameter(_x(T))),
    "saved, to the CPU": lambda T: _saved(T, _x(T), map_location="cpu"),
    "loaded to meta": lambda T: _saved(T, T.ones(2, 3), map_location="meta"),
    "a 0-d tensor of the CPU": lambda T: _x(T) + T.tensor(1.0, dtype=T.float64),
    "fill_ of the CPU's": lambda T: _x(T).fill_(T.tensor(1.0)),
    "an index of the CPU": lambda T: _x(T)[T.tensor([0, 1])],
    "a mask of the CPU": lambda T: _x(T)[T.tensor([True, False])],
    "views": lambda T: (_x(T)[1:, ::2], _x(T).diagonal(), _x(T).expand(2, 2, 3), _x(T).unfold(1, 2, 1), _x(T).view(T.int16)),
    "resize_": lambda T: T.empty(2, device="meta").resize_(5, 3),
    "set_": lambda T: T.empty(0, device="meta").set_(_x(T)),
    "out": lambda T: T.add(_x(T), 1, out=T.empty(0, device="meta")),
    "new_*": lambda T: (_x(T).new_zeros(2), _x(T).new_tensor([1]), _x(T).new_ones(2, device="cpu")),
    "predicates": lambda T: (_x(T).is_meta, _x(T).is_cpu, _x(T).is_cuda, _x(T).get_device(), _x(T).is_pinned(), _x(T).is_shared()),
    "apply_": lambda T: _x(T).apply_(lambda v: v),
    "map_": lambda T: _x(T).map_(_x(T), lambda v, w: v),
    "inside of a device": _inside,
    "loaded, not assigned": _loaded,
    "loaded, assigned": lambda T: _loaded(T, assign=True),
    "to_empty": _emptied,
    "to meta": _on_meta,
    "written": _written,
    **{
        name: lambda T, name=name: _stepped(T, name)
        for name in ("SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Rprop")
    },
}


@each(("ask",), list(ANSWERS.values()), ids=list(ANSWERS))
@pytest.mark.filterwarnings("ignore")
def test_answers(ask: Callable[[Any], Any]) -> None:
    assert _told(tt, ask(tt)) == _told(torch, ask(torch))


REFUSALS: dict[str, Callable[[Any], Any]] = {
    "item": lambda T: _x(T).sum().item(),
    "item of several": lambda T: _x(T).item(),
    "tolist": lambda T: _x(T).tolist(),
    "numpy": lambda T: _x(T).numpy(),
    "numpy, forced": lambda T: _x(T).numpy(force=True),
    "asarray": lambda T: np.asarray(_x(T)),
    "bool": lambda T: bool(_x(T).sum()),
    "bool of several": lambda T: bool(_x(T)),
    "float": lambda T: float(_x(T).sum()),
    "index": lambda T: [1][_x(T).sum().long()],
    "in": lambda T: 1 in _x(T),
    "a number's form": lambda T: f"{_x(T).sum():.2f}",
    "cpu": lambda T: _x(T).cpu(),
    "to the CPU": lambda T: _x(T).to("cpu"),
    "copy_ to the CPU": lambda T: T.zeros(2, 3).copy_(_x(T)),
    "an index that is a position": lambda T: T.ones(3)[T.zeros((), dtype=T.int64, device="meta")],
    "two devices": lambda T: _x(T) + T.ones(2, 3),
    "two devices, joined": lambda T: T.cat([_x(T), T.ones(2, 3)]),
    "out of the CPU": lambda T: T.add(_x(T), 1, out=T.empty(2, 3)),
    "nonzero": lambda T: _x(T).nonzero(),
    "unique": lambda T: _x(T).unique(),
    "masked_select": lambda T: _x(T).masked_select(_x(T) > 0),
    "a mask": lambda T: _x(T)[_x(T) > 0],
    "bincount": lambda T: T.bincount(_x(T)[0].long()),
    "repeat_interleave": lambda T: T.repeat_interleave(_x(T), T.zeros(2, dtype=T.int64, device="meta"), dim=0),
    "one_hot": lambda T: T.nn.functional.one_hot(T.zeros(2, dtype=T.int64, device="meta")),
    "allclose": lambda T: T.allclose(_x(T), _x(T)),
    "dlpack": lambda T: _x(T).__dlpack__(),
    "dlpack's device": lambda T: _x(T).__dlpack_device__(),
    "pin_memory": lambda T: _x(T).pin_memory(),
    "share_memory_": lambda T: _x(T).share_memory_(),
    "data": lambda T: setattr(T.ones(2), "data", _x(T)),
    "grad": lambda T: setattr(T.ones(2, 3, requires_grad=True), "grad", _x(T)),
    "a gradient that leaves": lambda T: T.ones(2, requires_grad=True).to("meta").sum().backward(),
    "a module to the CPU": lambda T: _built(T, "meta").to("cpu"),
    "a state of meta": lambda T: _built(T, "cpu").load_state_dict(_built(T, "meta").state_dict()),
}


@each(("ask",), list(REFUSALS.values()), ids=list(REFUSALS))
@pytest.mark.filterwarnings("ignore")
def test_refusals(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(Exception) as theirs:
        ask(torch)
    with pytest.raises(type(theirs.value)):
        ask(tt)


@pytest.mark.parametrize(("writer", "reader"), [(tt, torch), (torch, tt)], ids=["ours", "theirs"])
def test_files_go_both_ways(writer: Any, reader: Any) -> None:
    file = io.BytesIO()
    writer.save({"x": _x(writer).t()[1:], "p": writer.nn.Parameter(_x(writer).half())}, file)
    file.seek(0)
    found = reader.load(file)
    assert _told(reader, list(found.values())) == [
        ((2, 2), (1, 3), "float32", "meta", 0, False),
        ((2, 3), (3, 1), "float16", "meta", 0, True),
    ]
    assert type(found["p"]) is reader.nn.Parameter
