"""Refusals of public functions, in words that name them: arguments that contradict each other, dims that do not fit, numbers out of range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tests.loops import each


def places(x: tt.Tensor) -> tt.Tensor:
    return tt.tensor([0, 1, 2], device=x.device)


REDUCTIONS = (
    "sum", "nansum", "mean", "nanmean", "prod", "count_nonzero", "cumsum", "var", "std", "var_mean", "std_mean", "amax", "amin", "max", "min",
    "argmax", "argmin", "any", "all", "logsumexp",
)  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_two_names_for_one_argument(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: dim=0 and axis=1 are two names for one argument; give one"):
        getattr(tt, name)(tt.ones(2, 2), dim=0, axis=1)


def test_whole_numbers_that_are_close() -> None:
    a, b = tt.tensor([100, -100, 3, 7]), tt.tensor([101, -101, -3, 7])
    assert tt.isclose(a, b, rtol=0.01).tolist() == [True, True, False, True]
    assert tt.isclose(a, b, rtol=0, atol=0.5).tolist() == [False, False, False, True]
    assert tt.isclose(a, b.double() - 0.25, rtol=0, atol=0.5).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, words: x + words,
        lambda x, words: words * x,
        lambda x, words: x.__setitem__(slice(None), words),
        lambda x, words: x.copy_(words),
        lambda x, words: tt.where(x > 0, words, x),
    ],
)
def test_words_are_no_numbers(call: Callable[[tt.Tensor, np.ndarray], object]) -> None:
    x = tt.ones(2)
    with pytest.raises(tt.DTypeError, match="tensors cannot hold <U1; they hold bool, "):
        call(x, np.array(["a", "b"]))
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("value", [(2, 2, 3), (3, 1, 3), (3,) * 3])
def test_a_value_of_too_many_dimensions(value: tuple[int, ...]) -> None:
    x = tt.zeros(4, 3)
    with pytest.raises(tt.ShapeError, match=r"^setitem: value \(\d, \d, \d\) does not broadcast to the indexed elements, \(2, 3\)"):
        x[[0, 1]] = tt.ones(value)
    x[[0, 1]] = tt.ones(1, 1, 2, 3)
    assert x.sum().item() == 6


class Ours:
    """A class that knows tensors: its reflected operators are asked."""

    def __radd__(self, other: tt.Tensor) -> str:
        return f"{other.tolist()} added"

    def __rsub__(self, other: tt.Tensor) -> str:
        return f"{other.tolist()} less"

    def __rpow__(self, other: tt.Tensor) -> str:
        return f"{other.tolist()} raised"

    def __gt__(self, other: object) -> str:  # what `x < ours` asks
        return "greater"


def test_another_class_may_answer_an_operator() -> None:
    x = tt.ones(1)
    assert [x + Ours(), x - Ours(), x ** Ours(), x < Ours()] == ["[1.0] added", "[1.0] less", "[1.0] raised", "greater"]
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*: 'Tensor' and 'Ours'"):
        x * Ours()  # type: ignore[operator]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_lists_and_arrays_are_written_in_place(device: str) -> None:
    x = kept = tt.ones(2, device=device)
    x += [1, 2]
    x *= np.array([2.0, 3.0], np.float32)
    x -= (0, 1)
    assert x is kept
    assert x.tolist() == [4.0, 8.0]
    x += Ours()  # type: ignore[assignment]  # which has no in-place form: the answer takes the name
    assert x == "[4.0, 8.0] added"
    assert kept.tolist() == [4.0, 8.0]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("zero", [0, np.int64(0)])
def test_a_slice_makes_steps(device: str, zero: int) -> None:
    x = tt.ones(3, 2, device=device)
    for index in (slice(None, None, zero), (0, slice(None, None, zero)), (slice(None, None, zero), [0, 1])):
        with pytest.raises(ValueError, match=r"^getitem: a slice's step cannot be 0"):
            x[index]
        with pytest.raises(ValueError, match=r"a slice's step cannot be 0"):
            x[index] = 2.0
    assert x.sum().item() == 6


Call = Callable[[tt.Tensor], object]


def leaf() -> tt.Tensor:
    return tt.ones(2, 3, requires_grad=True)


# x is a (2, 3) of ones on the device that is tested
REFUSED: dict[str, tuple[Call, type[Exception], str]] = {
    "meshgrid's order": (lambda x: tt.meshgrid(x[0], x[1], indexing="ji"), ValueError, "meshgrid: indexing 'ji' is neither 'ij' nor 'xy'"),
    "meshgrid of a matrix": (lambda x: tt.meshgrid(x, x[0], indexing="ij"), RuntimeError, r"meshgrid: a tensor of shape \(2, 3\) is not a vector"),
    "scatter of two types": (lambda x: x.scatter(0, (x[:1] > 5).long(), x[:1].double()), TypeError, "scatter: src is float64, input is float32; cast one"),
    "index_select by a matrix": (lambda x: x.index_select(0, (x > 5).long()), RuntimeError, r"index_select: index \(2, 3\) is not a vector"),
    "index_select of a number, to those who catch PyTorch's": (lambda x: x.sum().index_select(0, (x[0] > 50).long()[:0]), RuntimeError, "index_select: 0 indices into a tensor"),
    "index_select of a number": (lambda x: x.sum().index_select(0, (x[0] > 5).long()), IndexError, "index_select: 3 indices into a tensor without dimensions; it takes one"),
    "take_along_dim": (lambda x: tt.take_along_dim(x, (x[0] > 5).long(), 1), RuntimeError, "take_along_dim: .*"),
    "masked_select by numbers": (lambda x: x.masked_select(x), TypeError, "masked_select: mask is float32; it takes bool, such as mask != 0"),
    "masked_scatter's source": (lambda x: x.masked_scatter(x > 0, x[0]), RuntimeError, "masked_scatter: source has 3 elements for 6 that the mask names"),
    "masked_fill by numbers": (lambda x: x.masked_fill(x, 0.0), TypeError, "masked_fill: mask is float32, not bool; compare it, as in mask != 0"),
    "expand by -2": (lambda x: x.expand(-2, 3), RuntimeError, r"expand: \(-2, 3\) for input \(2, 3\): -1 keeps the size of a dimension that x has"),
    "expand by a new -1": (lambda x: x.expand(-1, 2, 3), RuntimeError, r"expand: \(-1, 2, 3\) for input \(2, 3\): -1 keeps the size"),
    "vdot of a matrix": (lambda x: tt.vdot(x, x[0]), RuntimeError, r"vdot: input \(2, 3\)"),
    "vdot by a matrix": (lambda x: tt.vdot(x[0], x), RuntimeError, r"vdot: .*other \(2, 3\)"),
    "unsqueeze beyond the front": (lambda x: x.unsqueeze(-4), IndexError, "unsqueeze: dim -4 is out of range"),
    "unsqueeze beyond the end": (lambda x: x.unsqueeze(3), IndexError, "unsqueeze: dim 3 is out of range"),
    "select beyond the front": (lambda x: x[-3], IndexError, "index -3 is out of range for dim 0 of size 2"),
    "select beyond the end": (lambda x: x[2], IndexError, "index 2 is out of range for dim 0 of size 2"),
    "narrow beyond the end": (lambda x: x.narrow(1, 2, 2), RuntimeError, "narrow: "),
    "einsum with a letter twice": (lambda x: tt.einsum("ij->ii", x), RuntimeError, "einsum: "),
    "einsum with a letter of nowhere": (lambda x: tt.einsum("ij->k", x), RuntimeError, "einsum: "),
    "no equal parts": (lambda x: x.hsplit(2), RuntimeError, "hsplit: 2 equal parts of dim 1 of size 3; use tensor_split for unequal ones"),
    "equal parts, but none": (lambda x: x.vsplit(0), RuntimeError, "vsplit: 0 equal parts of dim 0 of size 2"),
    "select of a number": (lambda x: x.sum().select(0, 0), IndexError, "select: "),
    "split into nothing": (lambda x: x.split(0), RuntimeError, "split: a size of 0 does not split dim 0 of size 2; give a positive one"),
    "split into less": (lambda x: x.split(-1, dim=1), RuntimeError, "split: a size of -1 does not split dim 1 of size 3"),
    "repeats that are a matrix": (lambda x: tt.repeat_interleave(x.long()), TypeError, "repeat_interleave: give input and repeats, or repeats alone as a vector"),
    "repeats alone as a number": (lambda x: tt.repeat_interleave(3), TypeError, "repeat_interleave: "),
    "fewer than no repeats": (lambda x: x.repeat_interleave(-1), RuntimeError, "repeat_interleave: -1 repeats; give 0 or more"),
    "too few repeats": (lambda x: x.repeat_interleave(tt.tensor([1, 2], device=x.device), dim=1), RuntimeError, "repeat_interleave: 2 repeats for dim 1 of size 3"),
    "a repeat below 0": (lambda x: x.repeat_interleave(tt.tensor([1, -2], device=x.device), dim=0), RuntimeError, "repeat_interleave: -2 repeats; give 0 or more"),
    "chain_matmul of nothing": (lambda x: tt.chain_matmul(), RuntimeError, "chain_matmul: nothing; give one matrix or more, of two dimensions each"),
    "chain_matmul of a vector": (lambda x: tt.chain_matmul(x, x[0]), RuntimeError, r"chain_matmul: \(2, 3\), \(3,\); give one matrix or more"),
    "tensordot over too many": (lambda x: tt.tensordot(x, x, dims=3), RuntimeError, "tensordot: "),
    "tensordot over less": (lambda x: tt.tensordot(x, x, dims=-1), RuntimeError, "tensordot: "),
    "randint without an end": (lambda x: tt.randint(5), TypeError, "randint: give high and size, or low, high and size"),
    "randint without a size": (lambda x: tt.randint(low=0, high=3), TypeError, "randint: give high and size, or low, high and size"),
    "normal without a size": (lambda x: tt.normal(0.0, 1.0), TypeError, "normal: give a size with a mean and std that are numbers"),
    "multinomial of infinities": (lambda x: tt.multinomial(tt.full_like(x, float("inf")), 1), RuntimeError, "multinomial: weights must be finite and not negative"),
    "multinomial of negatives": (lambda x: tt.multinomial(x * tt.tensor([1.0, -1.0, 1.0], device=x.device), 1), RuntimeError, "multinomial: weights must be finite and not negative"),
    "multinomial of nothing": (lambda x: tt.multinomial(x * 0, 1), RuntimeError, "with a positive sum"),
    "dropout above 1": (lambda x: F.dropout(x, 1.5), ValueError, "dropout: dropout probability has to be between 0 and 1, but got 1.5; give such a p"),
    "dropout below 0": (lambda x: F.dropout(x, -0.5), ValueError, "dropout: dropout probability has to be between 0 and 1, but got -0.5; give such a p"),
    "cumsum of a matrix": (lambda x: tt.cumsum(x, None), TypeError, "cumsum: dim is missing for a tensor of 2 dims; give dim=0 to 1"),
    "unbiased and correction": (lambda x: x.var(unbiased=True, correction=1), TypeError, "var: "),
    "a place twice": (lambda x: x.expand_dims((0, 0)), RuntimeError, r"expand_dims: dims \(0, 0\) name a place twice"),
    "mT of a vector": (lambda x: x[0].mT, RuntimeError, r"mT: x \(3,\) has one dimension; it takes matrices and batches of them"),
    "H of a vector": (lambda x: x[0].H, RuntimeError, r"H: x \(3,\) is a vector; it takes a matrix"),
    "out that is no tensor": (lambda x: tt.add(x, x, out=[1.0]), TypeError, "add: out is a list, not a tensor"),
    "out in a graph": (lambda x: tt.add(x, x, out=leaf().to(x.device)), RuntimeError, "add: out= does not record gradients; call it under no_grad"),
    "a gradient into out": (lambda x: tt.add(x.clone().requires_grad_(), x, out=x.clone()), RuntimeError, "add: out= does not record gradients"),
    "data of another kind": (lambda x: setattr(x, "data", [1.0]), TypeError, r"data: list is not a tensor; wrap it with tensor\(...\)"),
    "a hook after accumulation": (lambda x: x.register_post_accumulate_grad_hook(print), RuntimeError, "register_post_accumulate_grad_hook: only a leaf that requires grad"),
    "one on a result": (lambda x: (x.clone().requires_grad_() * 2).register_post_accumulate_grad_hook(print), RuntimeError, "register_post_accumulate_grad_hook: only a leaf"),
    "retain_grad without one": (lambda x: x.retain_grad(), RuntimeError, "retain_grad: the tensor does not require grad"),
    "iteration over a number": (lambda x: list(x.sum()), TypeError, "iteration over a 0-d tensor"),
    "a shape of words": (lambda x: tt.Tensor("2", 3), TypeError, "Tensor: .* is no shape; give sizes as in"),
    "a shape below 0": (lambda x: tt.Tensor(2, -1), TypeError, "Tensor: .* is no shape"),
    "an integer beyond int64": (lambda x: tt.tensor([2**70]), RuntimeError, "tensor: an integer does not fit int64; give dtype=tritensor.float64, or smaller numbers"),
    "ragged lists": (lambda x: tt.tensor([[1, 2], [3]]), ValueError, "tensor: the nested lists are ragged"),
    "setitem by a value elsewhere": (lambda x: x.__setitem__(0, tt.ones(3, device="cpu" if x.is_cuda else "cuda")), RuntimeError, r"setitem: x is on \S+, the value on \S+; move it with .to\('"),
    "copy_ of the wrong shape": (lambda x: x.copy_(tt.ones(4, device=x.device)), RuntimeError, "copy_: "),
    "out elsewhere": (lambda x: tt.add(x, x, out=tt.ones(2, 3, device="cpu" if x.is_cuda else "cuda")), RuntimeError, r"add: the tensor is on \S+, the value on \S+; move the value"),
    "two devices": (lambda x: x + tt.ones(2, 3, device="cpu" if x.is_cuda else "cuda"), RuntimeError, "add: "),
    "too many operands": (lambda x: tt.ops.neg(x, x), TypeError, r"neg: takes 1 inputs \(x\), 2 were given; attributes are keyword-only"),
    "too few operands": (lambda x: tt.ops.mul(x), TypeError, "mul: takes a, b; 1 of 2 were given"),
    "an op's attribute left out": (lambda x: tt.ops.softmax(x), TypeError, r"softmax: missing a required argument: 'dim'; it is called as softmax\(x, /, \*, dim\)"),
    "an op's attribute of another name": (lambda x: tt.ops.sum(x, dim=(0,), keep=True), TypeError, r"sum: got an unexpected keyword argument 'keep'; it is called as sum\(x, /, \*, dim, keepdim=False\)"),
    "one of several inputs": (lambda x: tt.ops.cat(x, x), TypeError, r"cat: missing a required argument: 'dim'; it is called as cat\(\*xs, dim\)"),
    "scatter_reduce by a median": (lambda x: x.scatter_reduce(1, places(x)[None], x, "median"), ValueError, "scatter_reduce: reduce is 'median'; it is 'sum', 'prod', 'mean', 'amax' or 'amin'"),
    "scatter_reduce of another type": (lambda x: x.scatter_reduce(1, places(x)[None], x.double(), "sum"), RuntimeError, r"scatter_reduce: src is float64, input is float32; cast one of them with .to\("),
    "a mean of truth": (lambda x: (x > 0).scatter_reduce(1, places(x)[None], x > 0, "mean"), RuntimeError, r"scatter_reduce: bool has no mean; cast it with .to\("),
    "index_reduce to a sum": (lambda x: x.index_reduce(1, places(x), x, "sum"), RuntimeError, "index_reduce: reduce is 'sum'; it is 'prod', 'mean', 'amax' or 'amin' .for sums there is index_add"),
    "index_add of the wrong size": (lambda x: x.index_add(1, places(x)[:2], x), IndexError, r"index_add: input \(2, 3\), 2 indices along dim 1 and source \(2, 3\); source's shape must be \(2, 2\)"),
    "index_copy by a matrix": (lambda x: x.index_copy(1, places(x)[None], x), IndexError, r"index_copy: index \(1, 3\) is not a vector"),
    "index_fill by a vector": (lambda x: x.index_fill(1, places(x), x[0]), RuntimeError, r"index_fill: value has shape \(3,\); give a number or a 0-d tensor"),
    "index_put of another type": (lambda x: x.index_put((places(x)[:2],), x.double()), RuntimeError, r"index_put: values is float64, input is float32; cast one of them with .to\("),
    "index_put of the wrong shape": (lambda x: x.index_put((places(x)[:1],), x[:, :2]), RuntimeError, r"index_put: values \(2, 2\) does not broadcast to the indexed elements, \(1, 3\)"),
    "index_put by one tensor": (lambda x: x.index_put(places(x), x), TypeError, "index_put: indices is a Tensor; give a tuple of tensors"),
    "put of too few": (lambda x: x.put(places(x), x), IndexError, "put: source has 6 elements for 3 in index; both must be the same"),
    "masked_scatter of too few": (lambda x: x.masked_scatter(x > 0, x[0]), RuntimeError, "masked_scatter: source has 3 elements for 6 that the mask names"),
    "slice_scatter backwards": (lambda x: x.slice_scatter(x, 1, 0, 3, -1), RuntimeError, "slice_scatter: step is -1; it must be 1 or more"),
    "diagonal_scatter of the wrong size": (lambda x: x.diagonal_scatter(x[0]), RuntimeError, r"diagonal_scatter: src \(3,\) for a part of shape \(2,\); both must be the same"),
    "narrow of a number": (lambda x: x.sum().narrow(0, 0, 1), RuntimeError, "narrow: a 0-d tensor has no dimension to narrow"),
    "narrow from a truth": (lambda x: x.narrow(1, tt.tensor(True), 1), RuntimeError, "narrow: start is a tensor of bool; give an int, or a 0-d tensor of integers"),
    "segments of the wrong length": (lambda x: tt.segment_reduce(x, "sum", lengths=places(x), axis=0), RuntimeError, "segment_reduce: lengths do not add to 2, the size of axis 0; give unsafe=True"),
    "numpy with a gradient": (lambda x: x.cpu().clone().requires_grad_().numpy(), RuntimeError, "numpy: "),
    "a capsule with a gradient": (lambda x: x.cpu().clone().requires_grad_().__dlpack__(), BufferError, "dlpack: the tensor requires grad; export .detach"),
    "an array that must not be copied": (lambda x: x.cpu().__array__(np.float64, copy=False), ValueError, "numpy: float32 cannot become float64 without a copy"),
    "batched gradients": (lambda x: tt.autograd.grad(leaf().sum(), leaf(), is_grads_batched=True), RuntimeError, "grad: is_grads_batched wants grad_outputs of one more dimension, the first, of one size for all"),
}  # fmt: skip


@each(("name", "on"), [(name, on) for name in REFUSED for on in ("cpu", "cuda")])
def test_refused(name: str, on: str) -> None:
    call, error, says = REFUSED[name]
    x = tt.ones(2, 3, device=on)
    with pytest.raises(error, match=says):
        call(x)
    assert x.tolist() == [[1.0] * 3] * 2, "what was refused changed nothing"


def test_refused_of_complex_numbers() -> None:
    z = tt.tensor([[1 + 2j]])
    with pytest.raises(tt.DTypeError, match="clamp: complex64 has no order"):
        z.clamp(min=0)


def test_an_index_beyond_the_device() -> None:
    x = tt.ones(4, 2, device="cuda")
    assert x[tt.tensor(2)].tolist() == [1.0, 1.0], "one number may come from the CPU"
    cpu = tt.ones(4, 2)
    with pytest.raises(tt.DeviceError, match=r"getitem: x is on cpu, an index on cuda:0; move it with .to\('cpu'\)"):
        cpu[tt.tensor([0, 1], device="cuda")]
