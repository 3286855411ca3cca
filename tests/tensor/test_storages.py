"""The memory a tensor lies in, seen for reading; what kind a tensor is; the same memory as an instance of a subclass."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground.errors import GradError, NoDerivativeError

ON = pytest.mark.parametrize("on", ["cpu", "cuda"])


@ON
def test_tensors_of_one_memory_have_one_storage(on: str) -> None:
    x = tt.arange(12.0, device=on).reshape(3, 4)
    part = x[1:, ::2]
    assert part.storage().data_ptr() == x.storage().data_ptr() == x.untyped_storage().data_ptr()
    assert part.untyped_storage() == x.untyped_storage()
    assert hash(part.untyped_storage()) == hash(x.untyped_storage())
    assert part.untyped_storage().nbytes() == 48
    assert part.storage().size() == len(part.storage()) == 12
    assert x.clone().storage().data_ptr() != x.storage().data_ptr()
    assert part.storage().tolist() == list(part.storage()) == x.flatten().tolist()
    assert part.storage()[2:5] == [2.0, 3.0, 4.0]
    assert part.storage_offset() * 4 + part.storage().data_ptr() == part.data_ptr()
    assert (part.storage().dtype, part.storage().device) == (tt.float32, x.device)
    assert part.untyped_storage().is_cuda == part.untyped_storage().is_shared() == (on == "cuda")
    assert repr(x.storage()) == f"[tritensor.storage.TypedStorage(dtype=tritensor.float32, device={x.device}) of size 12]"
    assert repr(x.untyped_storage()) == f"[tritensor.storage.UntypedStorage(device={x.device}) of size 48]"


@ON
@pytest.mark.parametrize("dtype", [tt.bool, tt.uint8, tt.int64, tt.float16, tt.bfloat16, tt.float64])
def test_elements_of_every_type(on: str, dtype: tt.dtype) -> None:
    x = tt.tensor([1, 0, 1], dtype=dtype, device=on)
    assert x.storage().tolist() == [1, 0, 1]
    assert x.storage().element_size() == x.element_size()
    assert x.storage().untyped().size() == 3 * x.element_size()


@ON
def test_a_storage_keeps_its_memory_and_sees_writes(on: str) -> None:
    x = tt.arange(1000.0, device=on)
    memory = x[10:].storage()
    x[3] = -1
    del x
    gc.collect()
    tt.zeros(1000, device=on)
    assert memory[3] == -1
    assert memory[999] == 999


def test_a_storage_is_for_reading_and_made_by_no_one() -> None:
    x = tt.zeros(2)
    with pytest.raises(TypeError, match=r"^setitem: a storage is for reading here; write to the tensor itself"):
        x.storage()[0] = 1
    for kind in (tt.TypedStorage, tt.UntypedStorage):
        with pytest.raises(TypeError, match=rf"^{kind.__name__}: memory is no object of its own here; make a tensor"):
            kind(3)
    assert x.untyped_storage() != 3
    with pytest.raises(AttributeError, match=r"torch 2\.13 has it, tritensor does not; the nearest here is Tensor\.storage"):
        tt.FloatStorage  # noqa: B018


@ON
def test_kinds_of_tensors(on: str) -> None:
    x = tt.zeros(2, 3, device=on)
    assert (x.is_cpu, x.is_cuda) == (on == "cpu", on == "cuda")
    assert x.is_shared() == (on == "cuda")
    if on == "cuda":
        assert x.share_memory_() is x
        with pytest.raises(tt.DeviceError, match=r"^apply_: the tensor is on cuda:0; Python functions are called with numbers of the CPU"):
            x.apply_(abs)
    with pytest.raises(tt.GradError, match=r"^grad_dtype: float64 for a tensor of float32; a gradient has its tensor's type"):
        x.grad_dtype = tt.float64
    x.grad_dtype = tt.float32
    with pytest.raises(AttributeError):
        x.is_sparse = True


def test_a_function_of_numbers_is_called_once_for_each() -> None:
    x, seen = tt.arange(3, dtype=tt.int16), []
    version = x._version
    assert x.apply_(lambda a: seen.append(a) or a * 2) is x
    assert seen == [0, 1, 2]
    assert all(type(a) is int for a in seen)
    assert x.tolist() == [0, 2, 4]
    assert x._version > version
    with pytest.raises(OverflowError, match=r"^apply_: 70000 does not fit int16"):
        x.apply_(lambda a: 70000)
    assert x.tolist() == [0, 2, 4], "written in part"


class Named(tt.Tensor):
    """A subclass with an attribute of its own."""

    label = "none"


@ON
def test_a_subclass_on_the_same_memory(on: str) -> None:
    x = tt.arange(3.0, device=on)
    named = x.as_subclass(Named)
    assert type(named) is Named
    named.label = "three"
    named[0] = 5
    x[1] = 6
    assert named.tolist() == x.tolist() == [5, 6, 2]
    assert type(named + 1) is Named
    assert x._version == named._version > 0
    w = tt.ones(3, device=on, requires_grad=True)
    w.mul(named).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [5, 6, 2]
    named *= w
    assert named.requires_grad
    assert type(named) is Named


@ON
def test_a_subclass_in_the_graph(on: str) -> None:
    w = tt.ones(3, device=on, requires_grad=True)
    base = w * 2
    view = base.as_subclass(Named)
    assert type(view) is Named
    assert not view.is_leaf
    base.mul_(3)  # in the graph: the view finds its way anew
    total = (view * view).sum()
    assert isinstance(total, Named)
    total.backward()
    assert w.grad is not None
    assert type(w.grad) is tt.Tensor
    assert w.grad.tolist() == [72.0, 72.0, 72.0]
    assert type(view) is Named


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (9, 2), (10, 3), (2, 5), (8, 1)])
def test_a_diagonal_that_wraps_in_any_layout(rows: int, columns: int) -> None:
    x = tt.zeros(columns, rows).t()
    x.fill_diagonal_(1, wrap=True)
    marked = [i * columns + j for i, j in x.nonzero().tolist()]
    assert marked == list(range(0, rows * columns if rows > columns else columns * min(rows, columns), columns + 1))


def test_a_parameter_takes_other_memory_under_no_grad() -> None:
    p, other = tt.nn.Parameter(tt.zeros(3)), tt.ones(2, 2)
    with pytest.raises(GradError, match="set_: the tensor requires grad"):
        p.set_(other)
    with tt.no_grad():
        p.set_(other)
    assert p.shape == (2, 2)
    assert p.requires_grad
    (p * p).sum().backward()
    assert p.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_what_was_computed_takes_other_memory_and_has_no_derivative() -> None:
    """As in PyTorch, which lets go of the memory and refuses when a derivative is asked."""
    a, source = tt.ones(2, requires_grad=True), tt.ones(3, requires_grad=True)
    for x, given, shape in (
        (a * 2, (), (0,)),
        (a * 2, (tt.ones(3),), (3,)),
        (tt.ones(2), (source,), (3,)),
        (tt.ones(2), (source * 2,), (3,)),
    ):
        assert x.set_(*given) is x
        assert (tuple(x.shape), x.requires_grad, x.is_leaf) == (shape, True, False)
        with pytest.raises(NoDerivativeError, match="set_: there is no derivative"):
            x.sum().backward()
    assert a.grad is source.grad is None
    x = a * 2
    y = x * x  # which saved x
    x.set_(tt.ones(2))
    with pytest.raises(GradError, match="which set_ then overwrote in place"):
        y.sum().backward()
    x = tt.ones(2)
    assert not x.set_(source * 2, 0, (2,), (1,)).requires_grad  # a window is taken outside of the graph
    viewed = a * 2
    view = viewed[:1]
    for x in (viewed, view):
        with pytest.raises(GradError, match="set_: the tensor requires grad"):
            x.set_()
    assert viewed.tolist() == [2.0, 2.0]


def test_bytes_of_a_file_are_a_storage(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    whole = tt.UntypedStorage.from_file(path, shared=False, nbytes=16)
    part = whole[4:12]
    assert isinstance(part, tt.UntypedStorage)
    assert (len(whole), len(part), part[1], part.tolist()[-1], len(whole[9:2])) == (16, 8, 5, 11, 0)
    assert part.data_ptr() == whole.data_ptr() + 4
    x = tt.asarray(part, dtype=tt.uint8)
    x[0] = 99
    assert (whole[4], path.read_bytes()[4]) == (99, 4)
    assert np.array_equal(np.asarray(part[1:3]), [5, 6])
    shared = tt.UntypedStorage.from_file(path, True, 20)
    tt.asarray(shared, dtype=tt.uint8)[19] = 7
    assert path.read_bytes()[16:] == bytes([0, 0, 0, 7])
    with pytest.raises(RuntimeError, match="a step of 2; give one of 1"):
        whole[::2]
    with pytest.raises(ValueError, match="need 99 bytes"):
        tt.UntypedStorage.from_file(path, nbytes=99)
    with pytest.raises(FileNotFoundError, match="no file"):
        tt.UntypedStorage.from_file(tmp_path / "absent", nbytes=1)
