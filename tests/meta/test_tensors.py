"""Tensors on device meta: made, read, moved, written, viewed; what asks for values is refused by name, and no number is drawn."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.loops import each

MAKERS: dict[str, Callable[..., tt.Tensor]] = {
    "empty": lambda d: tt.empty(2, 3, device=d),
    "zeros": lambda d: tt.zeros(2, 3, dtype=tt.int64, device=d),
    "ones": lambda d: tt.ones((2, 3), device=d),
    "full": lambda d: tt.full((2,), 7, device=d),
    "rand": lambda d: tt.rand(2, 3, device=d),
    "randn": lambda d: tt.randn(3, dtype=tt.complex64, device=d),
    "randint": lambda d: tt.randint(5, (2,), device=d),
    "randperm": lambda d: tt.randperm(4, device=d),
    "normal": lambda d: tt.normal(0.0, 1.0, (3,), device=d),
    "arange": lambda d: tt.arange(0, 5, 2, device=d),
    "linspace": lambda d: tt.linspace(0, 1, 5, device=d),
    "linspace of complex": lambda d: tt.linspace(0, 1j, 5, device=d),
    "logspace": lambda d: tt.logspace(0, 1, 5, device=d),
    "eye": lambda d: tt.eye(3, 2, device=d),
    "tensor": lambda d: tt.tensor([[1, 2], [3, 4]], device=d),
    "as_tensor": lambda d: tt.as_tensor(np.ones(3), device=d),
    "asarray": lambda d: tt.asarray([1.5], device=d),
    "scalar_tensor": lambda d: tt.scalar_tensor(3, device=d),
    "empty_strided": lambda d: tt.empty_strided((2, 3), (1, 4), device=d),
    "empty, channels last": lambda d: tt.empty(2, 3, 4, 5, memory_format=tt.channels_last, device=d),
    "tril_indices": lambda d: tt.tril_indices(3, 3, device=d),
    "hann_window": lambda d: tt.hann_window(6, device=d),
    "zeros_like": lambda d: tt.zeros_like(tt.empty(2, 3).t(), device=d),
    "rand_like": lambda d: tt.rand_like(tt.empty(2, 3, device=d)),
    "new_ones": lambda d: tt.empty(1, dtype=tt.float16, device=d).new_ones(2, 2),
    "new_tensor": lambda d: tt.empty(1, device=d).new_tensor([1]),
    "to": lambda d: tt.ones(2, 3).t().to(d),
    "to a type": lambda d: tt.ones(2, device=d).to(tt.float64),
}


def told(x: tt.Tensor) -> Any:
    return tuple(x.shape), x.dtype, x.stride()


@each(("make",), list(MAKERS.values()), ids=list(MAKERS))
def test_makers_give_what_the_cpu_has(make: Callable[..., tt.Tensor]) -> None:
    here, there = make("cpu"), make("meta")
    assert told(there) == told(here)
    assert there.is_meta
    assert there.device.type == "meta"
    assert not here.is_meta
    assert not there.is_cuda
    assert not there.is_cpu
    with tt.device("meta"):
        assert make(None).is_meta
    assert not tt.ones(1).is_meta


def test_the_default_device() -> None:
    with tt.device("meta"):
        assert tt.ones(2).is_meta
        assert tt.nn.Linear(2, 2).weight.is_meta
        assert tt.tensor(1.0).is_meta
        assert not tt.ones(2, device="cpu").is_meta
        assert not tt.from_numpy(np.ones(2)).is_meta
        with tt.device("cpu"):
            assert not tt.rand(2).is_meta
    assert not tt.ones(2).is_meta
    tt.set_default_device("meta")
    try:
        assert tt.arange(3).is_meta
        assert tt.get_default_device().type == "meta"
    finally:
        tt.set_default_device(None)


def test_no_memory_is_taken() -> None:
    """A model of 70 thousand million numbers is a few windows on nothing."""
    x = tt.empty(70_000, 1_000_000, device="meta")
    y = (x * 2 + x.t().t()).softmax(-1) @ x[:10].t()
    assert (tuple(y.shape), x.untyped_storage().nbytes(), x.nbytes) == ((70_000, 10), 280_000_000_000, 280_000_000_000)
    assert tt.rand(1 << 40, device="meta").numel() == 1 << 40


def test_nothing_is_drawn() -> None:
    before = tt.get_rng_state()
    x = tt.rand(3, 4, device="meta")
    tt.nn.functional.dropout(x), tt.bernoulli(x), x.multinomial(2), tt.randn(2, device="meta"), x.normal_(), x.exponential_(), tt.poisson(x)
    tt.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.5), tt.nn.functional.gumbel_softmax(x)
    tt.nn.init.trunc_normal_(x), tt.nn.init.orthogonal_(x), tt.nn.init.sparse_(x, 0.5), tt.nn.LSTM(2, 3, device="meta")
    assert tt.equal(tt.get_rng_state(), before)


VALUES: dict[str, Callable[[tt.Tensor], Any]] = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "numpy by force": lambda x: x.numpy(force=True),
    "numpy's asarray": np.asarray,
    "a function of numpy": lambda x: np.add(x._array, 1),
    "numpy's stack": lambda x: np.stack([x._array, x._array]),
    "bool": lambda x: bool(x.sum()),
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "in": lambda x: 1 in x,
    "a number's form": lambda x: f"{x.sum():.2f}",
    "to": lambda x: x.to("cpu"),
    "cpu": lambda x: x.cpu(),
    "copy_": lambda x: tt.zeros(2, 3).copy_(x),
    "nonzero": lambda x: x.nonzero(),
    "argwhere": tt.argwhere,
    "unique": lambda x: x.unique(),
    "unique_consecutive": tt.unique_consecutive,
    "masked_select": lambda x: x.masked_select(x > 0),
    "a mask": lambda x: x[x > 0],
    "a mask of rows": lambda x: x[x[:, 0] > 0],
    "where": lambda x: tt.where(x > 0),
    "repeat_interleave": lambda x: x.repeat_interleave(tt.ones(2, dtype=tt.int64, device="meta"), 0),
    "bincount": lambda x: tt.bincount(x[0].long()),
    "one_hot": lambda x: tt.nn.functional.one_hot(x.long()),
    "equal": lambda x: tt.equal(x, x.clone()),
    "allclose": lambda x: tt.allclose(x, x.clone()),
    "a storage's bytes": lambda x: x.untyped_storage()[0],
    "share_memory_": lambda x: x.share_memory_(),
    "arange": lambda x: tt.arange(x.sum()),
}


@each(("ask",), list(VALUES.values()), ids=list(VALUES))
def test_values_are_refused(ask: Callable[[tt.Tensor], Any]) -> None:
    with pytest.raises(tt.errors.MetaError, match=r"^\w+: .*device meta has none") as caught:
        ask(tt.ones(2, 3, device="meta"))
    assert isinstance(caught.value, NotImplementedError)
    assert isinstance(caught.value, RuntimeError)


def test_shapes_that_need_no_values() -> None:
    x, i = tt.ones(4, 3, device="meta"), tt.zeros(4, dtype=tt.int64, device="meta")
    assert x.repeat_interleave(i, 0, output_size=9).shape == (9, 3)
    assert tt.nn.functional.one_hot(i, 5).shape == (4, 5)
    assert x[tt.tensor([0, 2])].shape == (2, 3)
    assert x[tt.tensor([True, False, True, True])].shape == (3, 3)  # a mask with values
    assert x.masked_scatter(x > 0, x).shape == (4, 3)
    assert tt.histc(x, 7).shape == (7,)
    assert tt.linalg.solve(x[:3], x[:3]).shape == (3, 3)
    assert tt.segment_reduce(x, "sum", lengths=i[:2]).shape == (2, 3)
    x[x > 0] = 1.0
    x[x[:, 0] > 0] = x[0]
    assert x._version == 2


def test_printing() -> None:
    x = tt.ones(2, 3, device="meta")
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    assert f"{x.sum()}" == "tensor(..., device='meta', size=())"
    assert repr(x.long()) == "tensor(..., device='meta', size=(2, 3), dtype=tritensor.int64)"
    assert repr(x.requires_grad_() * 2) == "tensor(..., device='meta', size=(2, 3), grad_fn=<MulBackward0>)"
    assert x.type() == "tritensor.meta.FloatTensor"
    assert not isinstance(x, tt.FloatTensor)


def test_views_share_a_storage_and_keep_strides() -> None:
    x, y = tt.ones(4, 6, device="meta"), tt.ones(4, 6)
    for view in (
        lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t[:, None], lambda t: t.expand(2, 4, 6), lambda t: t.reshape(2, 12), lambda t: t.unfold(1, 2, 1),
        lambda t: t.diagonal(1), lambda t: t.as_strided((2, 2), (1, 3), 4), lambda t: t.view(tt.int16), lambda t: t.chunk(2, 1)[1],
    ):  # fmt: skip
        a, b = view(x), view(y)
        assert told(a) == told(b)
        assert a.storage_offset() == b.storage_offset()
        assert (a._base is x) == (b._base is y)
        assert a._array.storage is x._array.storage
    assert (x.data_ptr(), x[1:].data_ptr()) == (0, 24)
    with pytest.raises(tt.errors.ShapeError):
        x.t().view(24)
    x.t()[0].mul_(2)
    assert x._version == 1


def test_writes_and_out() -> None:
    x = tt.rand(2, 3, device="meta")
    before = x._array
    assert x.add_(1).mul_(x).copy_(tt.ones(3)).fill_(tt.tensor(2.0)).zero_() is x
    x[0], x[:, 1] = 3.0, x[:, 0]
    assert x._array is before
    assert x._version == 7
    assert tt.add(x, x, out=tt.empty(0, device="meta")).shape == (2, 3)
    assert x.resize_(5).shape == (5,)
    for wrong in (lambda: x.add_(tt.ones(7, device="meta")), lambda: tt.add(x, x, out=tt.empty(5))):
        with pytest.raises((tt.errors.ShapeError, tt.errors.DeviceError)):
            wrong()


def test_devices_are_not_mixed() -> None:
    x = tt.ones(2, 2, device="meta")
    for mixed in (
        lambda: x + tt.ones(2, 2),
        lambda: x @ tt.ones(2, 2),
        lambda: tt.cat([x, tt.ones(2, 2)]),
        lambda: tt.ones(2, 2)[x[0].long()],
    ):
        with pytest.raises(tt.errors.DeviceError, match="meta"):
            mixed()
    assert (x + tt.tensor(1.0)).is_meta
    assert (tt.tensor(2.0, dtype=tt.float64) * x).dtype is tt.float32
    with pytest.raises(tt.errors.MetaError, match="data: the tensor is on cpu, its new data on meta"):
        tt.ones(2, 2).data = x


def test_copies_pickles_and_files() -> None:
    x = tt.ones(4, 6, device="meta").requires_grad_()
    for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps(tt.nn.Parameter(x.detach())))):
        assert told(again) == told(x)
        assert again.is_meta
        assert again.requires_grad
    pair = copy.deepcopy([x.detach(), x.detach()[1:]])
    assert pair[0]._array.storage is pair[1]._array.storage
    file = io.BytesIO()
    tt.save({"x": x.detach().t()[1:], "p": tt.nn.Parameter(x.detach()), "y": tt.ones(2)}, file)
    assert file.tell() < 3000
    file.seek(0)
    found = tt.load(file)
    assert told(found["x"]) == ((5, 4), tt.float32, (1, 6))
    assert found["x"].is_meta
    assert type(found["p"]) is tt.nn.Parameter
    assert found["y"].tolist() == [1.0, 1.0]
    file.seek(0)
    assert tt.load(file, map_location="meta")["y"].is_meta


def test_other_libraries_are_told() -> None:
    x = tt.ones(2, device="meta")
    with pytest.raises(BufferError, match="device meta"):
        x.__dlpack__()
    with pytest.raises(ValueError, match="device meta"):
        x.__dlpack_device__()
    assert (x.get_device(), x.is_pinned(), x.is_shared()) == (-1, False, False)
    with pytest.raises(tt.errors.DeviceError, match="pin_memory"):
        x.pin_memory()
    tt.testing.assert_close(x, tt.zeros(2, device="meta"))
    with pytest.raises(AssertionError):
        tt.testing.assert_close(x, tt.ones(3, device="meta"))
