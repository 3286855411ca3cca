"""Device of tensors when nobody names one: set_default_device, `with device(...)`, typed classes as the default."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import tritensor as tt


@pytest.fixture(autouse=True)
def default_again() -> Iterator[None]:
    yield
    tt.set_default_device(None)
    tt.set_default_dtype(tt.float32)


def test_set_default_device_moves_what_is_made() -> None:
    tt.set_default_device("cuda")
    assert tt.get_default_device().type == "cuda"
    made = (
        tt.ones(2),
        tt.tensor([1]),
        tt.arange(3),
        tt.rand(2),
        tt.eye(2),
        tt.linspace(0, 1, 3),
        tt.hann_window(4),
        tt.tril_indices(2, 2),
        tt.randperm(3),
    )
    assert {x.device.type for x in made} == {"cuda"}
    assert tt.ones(2, device="cpu").device.type == "cpu"
    assert tt.zeros_like(tt.ones(2, device="cpu")).device.type == "cpu"
    tt.set_default_device(None)
    assert tt.ones(2).device.type == "cpu"


def test_a_device_is_a_block() -> None:
    with tt.device("cuda") as on:
        assert tt.ones(2).device.type == on.type == "cuda"
        with tt.device("cpu"):
            assert tt.ones(2).device.type == "cpu"
        assert tt.ones(2).device.type == "cuda"
    assert tt.ones(2).device.type == "cpu"


def test_a_block_ends_with_an_error() -> None:
    with pytest.raises(KeyError), tt.device("cuda"):
        raise KeyError
    assert tt.ones(2).device.type == "cpu"


def test_another_thread_has_a_default_of_its_own() -> None:
    found = []
    with tt.device("cuda"):
        thread = threading.Thread(target=lambda: found.append(tt.ones(2).device.type))
        thread.start()
        thread.join()
    assert found == ["cpu"]


def test_numpy_memory_stays_where_it_is() -> None:
    with tt.device("cuda"):
        assert tt.from_numpy(tt.ones(2, device="cpu").numpy()).device.type == "cpu"
        assert tt.frombuffer(bytearray(4), dtype=tt.uint8).device.type == "cpu"
        assert tt.multinomial(tt.ones(3, device="cpu"), 2).device.type == "cpu"
        assert tt.poisson(tt.ones(3, device="cpu")).device.type == "cpu"


def test_a_typed_class_as_the_default() -> None:
    tt.set_default_tensor_type("torch.cuda.DoubleTensor")
    x = tt.ones(2)
    assert (x.device.type, x.dtype) == ("cuda", tt.float64)
    tt.set_default_tensor_type(tt.FloatTensor)
    x = tt.ones(2)
    assert (x.device.type, x.dtype) == ("cpu", tt.float32)


def test_typed_classes_on_a_gpu() -> None:
    x = tt.cuda.FloatTensor([1, 2])
    assert isinstance(x, tt.cuda.FloatTensor)
    assert not isinstance(x, tt.FloatTensor)
    assert x.type() == "tritensor.cuda.FloatTensor"
    assert x.get_device() == 0
    assert x.type("torch.LongTensor").device.type == "cpu"
    assert tt.ones(2).type(tt.cuda.HalfTensor).dtype is tt.float16
    assert repr(tt.cuda.FloatTensor) == "<class 'tritensor.cuda.FloatTensor'>"
    with pytest.raises(tt.ArgumentError, match="does not live"):
        tt.FloatTensor(2, device="cuda")
