"""copy, deepcopy and pickle of tensors: what shares memory afterwards, strides, gradients, attributes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn
from tritensor.ground.errors import GradError
from tritensor.tensor.aliasing.inplace import broadcasts_to

DEVICES = ["cpu", "cuda"]


def base(device: str) -> Any:
    return tt.arange(6.0).reshape(2, 3).to(device)


def pickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", [("base", "t", "row"), ("row", "t", "base"), ("t", "base", "row")], ids=str)
def test_views_copied_together_share_one_copy(order: tuple[str, ...], device: str) -> None:
    b = base(device)
    views = {"base": b, "t": b.t(), "row": b[1]}
    found = copy.deepcopy({name: views[name] for name in order})
    for name in order:
        assert found[name].stride() == views[name].stride()
    found["row"].zero_()
    found["t"][2, 0] = 9.0
    assert found["base"].tolist() == [[0, 1, 9], [0, 0, 0]]
    assert found["t"].tolist() == [[0, 0], [1, 0], [9, 0]]
    assert b.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_siblings_copied_without_their_base_still_overlap() -> None:
    b = base("cpu")
    left, right = copy.deepcopy((b[:, :2], b[:, 1:]))
    left[:, 1] = 7.0
    assert right.tolist() == [[7, 2], [7, 5]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("through", [copy.deepcopy, pickled, copy.copy], ids=["deepcopy", "pickle", "copy"])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[1],
        lambda x: x[:, ::2],
        lambda x: x[1, 2],
        lambda x: x[:0],
        lambda x: x[:1].expand(4, 3),
        lambda x: x.unsqueeze(1).transpose(0, 2),
        lambda x: x.bfloat16(),
        lambda x: x > 2,
    ],
)
def test_strides_and_values_stay(view: Any, through: Any, device: str) -> None:
    x = view(base(device))
    found = through(x)
    assert (found.shape, found.stride(), found.dtype, found.device) == (x.shape, x.stride(), x.dtype, x.device)
    assert found.tolist() == x.tolist()


def test_negative_strides_and_odd_memory() -> None:
    for array in (np.arange(5)[::-1], np.arange(12.0).reshape(3, 4)[::-1, ::2], np.broadcast_to(np.float32(3), (2, 2)), np.zeros((0, 3))):
        x = tt.from_numpy(array)
        for found in (copy.deepcopy(x), pickled(x), copy.deepcopy([x, x[:1]])[0]):
            assert found._array.strides == array.strides
            assert found.tolist() == array.tolist()
            if found._array.size and 0 not in array.strides:
                found += 1
                assert found.tolist() == (array + 1).tolist()


def test_a_mapped_file_is_not_copied_whole(tmp_path: Any) -> None:
    np.arange(1000.0).tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float64)
    found = copy.deepcopy(tt.from_numpy(mapped[10:12]))
    assert found.tolist() == [10, 11]
    assert found._array.base.nbytes == 16


def test_a_pickle_holds_the_window_alone() -> None:
    assert len(pickle.dumps(tt.zeros(100_000)[5:7])) < 1000


def test_copy_shares_memory_and_stands_alone_otherwise() -> None:
    x = base("cpu").requires_grad_()
    x.grad = tt.ones(2, 3)
    found = copy.copy(x)
    assert found is not x
    assert found.requires_grad
    assert found.is_leaf
    assert found.grad is None
    with tt.no_grad():
        found[0, 0] = 7.0
    assert x[0, 0].item() == 7.0
    computed = copy.copy(x * 2)
    assert computed.is_leaf
    assert computed.requires_grad
    p = nn.Parameter(tt.ones(2))
    assert type(copy.copy(p)) is nn.Parameter


def test_a_write_through_a_copy_is_noticed() -> None:
    x = tt.ones(2, requires_grad=True)
    y = (x * x).sum()
    with tt.no_grad():
        copy.copy(x).mul_(2)
    with pytest.raises(GradError):
        y.backward()


def test_deepcopy_keeps_gradients_and_attributes_of_leaves() -> None:
    x = tt.ones(2, requires_grad=True)
    x.grad = tt.ones(2)
    found = copy.deepcopy(x)
    assert found.requires_grad
    assert found.grad.tolist() == [1, 1]
    assert found.grad is not x.grad
    with pytest.raises(GradError, match="only leaves can be deep-copied"):
        copy.deepcopy(x * 2)
    p = nn.Parameter(tt.ones(2))
    p.note, p.grad = [1], tt.ones(2)
    found = copy.deepcopy(p)
    assert found.note == [1]
    assert found.note is not p.note
    assert found.grad is None


def test_a_computed_tensor_is_pickled_as_a_leaf() -> None:
    found = pickled(tt.ones(2, requires_grad=True) * 3)
    assert (found.tolist(), found.requires_grad, found.is_leaf) == ([3, 3], True, True)


@pytest.mark.parametrize("device", DEVICES)
def test_parameters_copy_what_is_theirs(device: str) -> None:
    whole = tt.arange(6.0).to(device)
    a, b = nn.Parameter(whole[:4].reshape(2, 2).t()), nn.Parameter(whole[4:])
    found = copy.deepcopy([a, b, a])
    assert found[0] is found[2]
    assert found[0].stride() == (1, 2)
    assert found[0].tolist() == a.tolist()
    with tt.no_grad():
        found[0].fill_(9)
    assert (found[1].tolist(), whole.tolist()) == ([4, 5], [0, 1, 2, 3, 4, 5])


# Functions whose last step looks at a copy that nobody else has: what they return owns its memory, as in PyTorch
OWNERS: dict[str, Any] = {
    "reshape": lambda x: x.t().reshape(-1), "reshape of an expanded": lambda x: x.expand(2, 2, 3).reshape(-1), "flatten": lambda x: x.t().flatten(),
    "ravel": lambda x: x.t().ravel(), "reshape_as": lambda x: x.t().reshape_as(x), "Flatten": lambda x: nn.Flatten(0)(x.t()),
    "repeat": lambda x: x.repeat(2, 1), "tile": lambda x: x.tile((2, 2)), "repeat_interleave": lambda x: x.repeat_interleave(2),
    "roll": lambda x: x.roll(1), "rot90": lambda x: tt.rot90(x), "diag": lambda x: tt.diag(x),
    "gather": lambda x: x[0, 0].gather(0, tt.tensor([0], device=x.device)),
    "index_select": lambda x: x.sum().index_select(0, tt.tensor([0], device=x.device)),
    "masked_scatter": lambda x: x[0, 0].masked_scatter(x[0, 0] > -1, x),
    "max_pool2d": lambda x: nn.functional.max_pool2d(x[None], 1), "avg_pool2d": lambda x: nn.functional.avg_pool2d(x[None], 1),
    "logsumexp": lambda x: x.logsumexp(0), "norm": lambda x: x.norm("nuc", dim=(0, 1), keepdim=True),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("what", OWNERS)
def test_a_copy_is_nobodys_view(what: str, device: str) -> None:
    x = base(device)
    y = OWNERS[what](x)
    assert y._base is None
    with tt.no_grad():
        y = OWNERS[what](x.requires_grad_() * 1)
    y.mul_(tt.ones_like(y).requires_grad_())  # a view made under no_grad could not be written in the graph
    y = OWNERS[what](x)
    want = y.tolist()
    y.mul_(2)  # in the graph, as a computed tensor of its own
    assert y.tolist() == (np.array(want) * 2).tolist()
    assert x.tolist() == np.arange(6.0).reshape(2, 3).tolist()
    assert tt.autograd.grad(y.sum(), x)[0].shape == x.shape


@pytest.mark.parametrize("device", DEVICES)
def test_broadcast_to_takes_sizes_one_by_one(device: str) -> None:
    x = base(device)
    assert x.broadcast_to(2, 2, 3).shape == x.broadcast_to((2, 2, 3)).shape == tt.broadcast_to(x, shape=(2, 2, 3)).shape == (2, 2, 3)
    assert tt.broadcast_to(x, size=(2, 2, 3))._base is not None


def test_what_broadcasts_to_a_target() -> None:
    assert all(broadcasts_to(s, (2, 3)) for s in ((), (1,), (3,), (2, 3), (1, 3), (2, 1)))
    assert not any(broadcasts_to(s, (2, 3)) for s in ((2,), (3, 3), (1, 2, 3), (2, 2), (0,)))


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("laid", [lambda x: x, lambda x: x.permute(2, 0, 1), lambda x: x[1:, ::2], lambda x: x[:0], lambda x: x[0, 0, 0]])
def test_pickled_it_is_the_same_on_the_same_device(laid: Callable[[tt.Tensor], tt.Tensor], on: str) -> None:
    x = laid(tt.arange(24.0, device=on).reshape(2, 3, 4)).detach().requires_grad_()
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == x.tolist()
    assert (y.stride(), y.dtype, y.device, y.requires_grad) == (x.stride(), x.dtype, x.device, True)
    with tt.no_grad():
        y.zero_()
    assert x.tolist() == laid(tt.arange(24.0).reshape(2, 3, 4)).tolist(), "the memory is its own"


def test_small_answers() -> None:
    x = tt.ones(2, 3, requires_grad=True)
    y = x * 2
    assert complex(tt.tensor(2.5)) == 2.5 + 0j
    assert complex(tt.tensor(1 - 2j)) == 1 - 2j
    assert [t.output_nr for t in (x, y, *tt.var_mean(y))] == [0, 0, 0, 0]
    assert y.max(dim=0).values.output_nr == 0
    assert x.retain_grad() is None, "a leaf keeps its gradient anyway"
    both = [x, x]
    first, second = copy.deepcopy(both)
    assert first is second
    assert first is not x
    assert repr(tt.strided) == "tritensor.strided"
    assert pickle.loads(pickle.dumps(tt.strided)) is tt.strided
    assert copy.deepcopy(tt.strided) is tt.strided


def test_a_tensor_carries_what_scripts_hang_on_it():
    x = tt.ones(2)
    x.tag, x.no_decay = ["a"], True
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (y.tag, y.no_decay) == (["a"], True)
    assert not hasattr(x + 1, "tag")
    assert not hasattr(x.detach(), "tag")
    with pytest.raises(AttributeError, match="other"):
        x.other  # noqa: B018
