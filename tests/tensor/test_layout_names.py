"""Layouts that no tensor has here: objects with PyTorch's names, to compare with and to keep; making a tensor of one raises by its name."""

from __future__ import annotations

import copy
import importlib
import io
import pickle

import pytest

import tritensor as tt

NAMES = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn")


@pytest.mark.parametrize("name", NAMES)
def test_a_layout_is_one_object_wherever_it_comes_from(name: str) -> None:
    made = getattr(tt, name)
    assert isinstance(made, tt.layout)
    assert repr(made) == str(made) == f"tritensor.{name}"
    assert copy.deepcopy(made) is made
    assert pickle.loads(pickle.dumps(made)) is made
    file = io.BytesIO()
    tt.save([made], file)
    file.seek(0)
    assert tt.load(file)[0] is made
    assert (tt.ones(2).layout == made) is (name == "strided")


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_tensor_of_another_layout_is_refused_by_its_name(name: str) -> None:
    for make in (tt.ones, tt.zeros, tt.rand, lambda n, layout: tt.zeros_like(tt.ones(n), layout=layout), tt.signal.windows.hann):
        with pytest.raises(NotImplementedError, match=f"tensors of layout tritensor.{name} are not built here"):
            make(3, layout=getattr(tt, name))


def test_no_further_layout_is_made() -> None:
    with pytest.raises(TypeError, match=r"there are no others than tritensor\.strided, tritensor\.sparse_coo"):
        tt.layout()


@pytest.mark.parametrize("make", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "sparse_compressed"])
def test_makers_of_sparse_tensors_refuse(make: str) -> None:
    with pytest.raises(NotImplementedError, match=f"{make}_tensor: not in tritensor: there are no sparse tensors here"):
        getattr(tt, f"{make}_tensor")([[0]], [1.0])


def test_what_libraries_name_of_the_modules_is_there() -> None:
    sparse, nested = importlib.import_module("tritensor.sparse"), importlib.import_module("tritensor.nested")
    assert sparse.Tensor is tt.Tensor
    assert not isinstance(tt.ones(2), (sparse.FloatTensor, sparse.DoubleTensor, sparse.HalfTensor))
    with pytest.raises(NotImplementedError, match=r"sparse\.mm: not in tritensor: there are no sparse tensors"):
        sparse.mm(tt.ones(2, 2), tt.ones(2, 2))
    with pytest.raises(NotImplementedError, match=r"pad with nn\.utils\.rnn\.pad_sequence"):
        nested.nested_tensor([tt.ones(2)])
    assert not hasattr(sparse, "no_such_name")
