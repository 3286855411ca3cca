"""Names of `torch` and `torch._C` that PyTorch does not document: checks, the configuration, the text of tensors, casts and indices."""

from __future__ import annotations

import importlib
import re

import pytest

import tritensor as tt

text = importlib.import_module("tritensor._tensor_str")


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: tt._assert(tt.tensor(0), "told"), AssertionError, "told"),
        (lambda: tt._assert_async(tt.tensor(0)), RuntimeError, "the tensor's one value is 0"),
        (lambda: tt._assert_async(tt.tensor(0.0), "told"), RuntimeError, "told"),
        (lambda: tt._assert_async(tt.ones(2)), RuntimeError, r"of shape \(2,\); give one element"),
        (lambda: tt._check(False, lambda: "told"), RuntimeError, "told"),
        (lambda: tt._check(False), RuntimeError, "the condition does not hold"),
        (lambda: tt._check(False, "text"), TypeError, "message is of type str"),
        (lambda: tt._check(tt.tensor(True)), TypeError, "of type Tensor; of tensors use _check_tensor_all"),
        (lambda: tt._check(1), TypeError, "of type int; give a bool"),
        (lambda: tt._check_index(False), IndexError, "does not hold"),
        (lambda: tt._check_value(False), ValueError, "does not hold"),
        (lambda: tt._check_type(False), TypeError, "does not hold"),
        (lambda: tt._check_not_implemented(False), NotImplementedError, "does not hold"),
        (lambda: tt._check_with(KeyError, False, lambda: "k"), KeyError, "k"),
        (lambda: tt._check_is_size(-1), RuntimeError, "does not hold"),
        (lambda: tt._check_is_size(3, max=2), RuntimeError, "does not hold"),
        (lambda: tt._check_tensor_all(tt.tensor([True, False]), lambda: "told"), RuntimeError, "told"),
        (lambda: tt._check_tensor_all(True), TypeError, "give a tensor, or use _check"),
        (lambda: tt.SymInt(3), NotImplementedError, "SymInt: not in tritensor: nothing is traced"),
    ],
)
def test_a_check_that_fails_raises_its_kind(call, error, said) -> None:
    with pytest.raises(error, match=said) as told:
        call()
    assert type(told.value).__mro__[0] is error or issubclass(type(told.value), error)


def test_checks_that_hold_say_nothing() -> None:
    held = [
        tt._assert(True, "never"), tt._assert_async(tt.tensor(2.5)), tt._check(True, 5), tt._check_is_size(2, max=2),
        tt._check_tensor_all(tt.ones(2).bool()), tt._check_with(KeyError, True, None),
    ]  # fmt: skip
    assert held == [None] * 6


def test_types_of_the_tracer_are_for_isinstance() -> None:
    assert not isinstance(3, (tt.SymInt, tt.SymFloat, tt.SymBool))
    assert tt.torch is importlib.import_module("tritensor")


def test_the_configuration_says_what_computes() -> None:
    import numpy as np

    shown = tt.__config__.show()
    assert f"numpy {np.__version__}, its BLAS: " in shown
    assert re.search(r"triton \d+\.\d+", shown)
    assert "USE_MKL=OFF" in shown
    assert f"threads of an op : {tt.get_num_threads()}\n" in tt.__config__.parallel_info()


def test_text_of_tensors() -> None:
    x = tt.ones(2, 3)
    assert text._tensor_str(x, 3) == "[[1., 1., 1.],\n    [1., 1., 1.]]"
    assert text._str(x) == repr(x)
    assert text._str_intern(x.double(), tensor_contents="[...]") == "tensor([...], dtype=tritensor.float64)"
    assert text._add_suffixes("tensor(abc", ["size=(2)", "k=3"], 4, False) == "tensor(abc, size=(2), k=3)"
    assert text._add_suffixes("tensor(abc", ["size=(2)", "k=3"], 4, True) == "tensor(abc,\n    size=(2), k=3)"


def test_options_of_the_text_are_read_set_and_put_back() -> None:
    assert text.get_printoptions() == {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    with text.printoptions(precision=2):
        assert (text.PRINT_OPTS.precision, repr(tt.tensor(1 / 3))) == (2, "tensor(0.33)")
        text.PRINT_OPTS.edgeitems = 1
    assert (text.PRINT_OPTS.precision, text.PRINT_OPTS.edgeitems) == (4, 3)
    with pytest.raises(AttributeError, match="no option 'colour'"):
        text.PRINT_OPTS.colour = 1


def test_functions_with_an_underscore() -> None:
    x = tt.ones(2, 3)
    assert tt._shape_as_tensor(x).tolist() == [2, 3]
    assert tt._cast_Long(tt.tensor([1.5])).dtype is tt.int64
    assert tt._convert_indices_from_coo_to_csr(tt.tensor([0, 0, 2]), 4).tolist() == [0, 2, 2, 3, 3]
    starts, columns = tt.tensor([0, 2, 2, 3]), tt.tensor([1, 2, 0])
    assert tt._convert_indices_from_csr_to_coo(starts, columns).tolist() == [[0, 0, 2], [1, 2, 0]]
    assert tt._convert_indices_from_csr_to_coo(starts, columns, transpose=True, out_int32=True).tolist() == [[1, 2, 0], [0, 0, 2]]
    assert tt._segment_reduce(tt.tensor([1.0, 2.0, 3.0]), "sum", offsets=tt.tensor([0, 2, 3])).tolist() == [3, 3]
    tt.manual_seed(0)
    assert tt._standard_gamma(tt.full((4000,), 3.0)).mean().item() == pytest.approx(3.0, rel=0.05)
    assert tt.allclose(tt._sample_dirichlet(tt.ones(5, 3)).sum(-1), tt.ones(5))


def test_questions_to_the_compiled_half() -> None:
    assert not tt._C._are_functorch_transforms_active()
    assert tt.func.vmap(lambda x: x * tt._C._are_functorch_transforms_active())(tt.ones(2)).tolist() == [1, 1]
    assert (tt._C._get_default_device(), tt._C._get_privateuse1_backend_name()) == ("cpu", "privateuseone")
    assert tt._C._get_accelerator().type == ("cuda" if tt.cuda.is_available() else "cpu")
    assert (tt._C._jit_can_fuse_on_cpu(), tt._C._jit_can_fuse_on_gpu()) == (False, False)


def test_a_view_says_so() -> None:
    x = tt.ones(3)
    assert (x._is_view(), x[:2]._is_view(), x.clone()._is_view()) == (False, True, False)


def test_calls_of_other_ranks_are_named_and_not_there() -> None:
    rpc = importlib.import_module("tritensor.distributed.rpc")
    assert not rpc.is_available()
    assert not importlib.import_module("tritensor.distributed.autograd").is_available()
    with pytest.raises(NotImplementedError, match=r"distributed\.rpc\.init_rpc: not in tritensor: no rank calls"):
        rpc.init_rpc("worker")
    assert not isinstance(3, rpc.RRef)
    assert (tt._C._disabled_torch_function_impl, tt._C.DisableTorchFunction) != (None, None)


def test_modules_under_names_that_are_something_else_as_well() -> None:
    assert tt.jit.annotations is importlib.import_module("tritensor.jit.annotations")
    assert tt.jit.annotations.BroadcastingList2[int] == list[int]
    assert tt.jit.annotations.List is not None
    assert importlib.import_module("tritensor.distributed._tensor").DTensor is tt.distributed.tensor.DTensor
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        tt.distributed._tensor.nothing  # noqa: B018
    assert importlib.import_module("tritensor.cuda.amp.common").amp_definitely_not_available() is not tt.cuda.is_available()


def test_what_a_path_holds_is_there_for_who_asks_it_all_at_once() -> None:
    """Libraries resolve the names of layers so, as vars(torch.nn.modules.activation)."""
    activation = importlib.import_module("tritensor.nn.modules.activation")
    classes = {n for n, value in vars(activation).items() if isinstance(value, type) and issubclass(value, tt.nn.Module)}
    assert {"ReLU", "MultiheadAttention", "Tanhshrink"} <= classes
    assert activation.__dict__["ReLU"] is tt.nn.ReLU
    activation.mine = 3
    assert vars(activation)["mine"] == 3
    assert not hasattr(activation, "no_such_name")


def test_segments_are_reduced_by_either_word() -> None:
    x, ends = tt.tensor([1.0, 5.0, 3.0]), tt.tensor([0, 2, 3])
    for word, other in (("max", "amax"), ("min", "amin")):
        assert tt.segment_reduce(x, word, offsets=ends).tolist() == tt.segment_reduce(x, other, offsets=ends).tolist()
