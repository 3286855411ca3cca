"""Bad input: one line, before anything runs, naming the op, what was given, what disagrees and how to mend it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
from tests.loops import each

F = tt.nn.functional


def t(*shape: int, dtype: object = None) -> tt.Tensor:
    return tt.ones(*shape, dtype=dtype)


# (call, exception that PyTorch or numpy users catch, what the message says)
CASES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "matmul": (lambda: t(4, 3) @ t(5, 2), RuntimeError, r"matmul: a \(4, 3\) @ b \(5, 2\): a's last size 3 is not b's first 5"),
    "mm": (lambda: tt.mm(t(4, 3), t(3)), RuntimeError, "mm"),
    "sub of bools": (
        lambda: t(2, dtype=tt.bool) - t(2, dtype=tt.bool),
        TypeError,
        "^sub: a is bool; sub takes uint, int, float, complex types",
    ),
    "an integer to a negative power": (lambda: t(2, dtype=tt.int64) ** -1, ValueError, r"^pow: int64 to the power -1: .*\.float\(\)"),
    "add": (
        lambda: t(2, 3) + t(4),
        RuntimeError,
        r"add: a \(2, 3\), b \(4,\): sizes 3 and 4 at dim -1 do not broadcast\. The size of tensor a \(3\) must match the size of tensor b \(4\)",
    ),
    "view": (lambda: t(2, 3).view(4), RuntimeError, r"view: shape \(2, 3\) has 6 elements, shape \(4,\) needs 4"),
    "view of a transpose": (lambda: t(2, 3).t().view(6), RuntimeError, "use reshape, which copies"),
    "two unknown sizes": (lambda: t(2, 3).view(-1, -1), RuntimeError, "-1"),
    "sum over a dim that is not there": (
        lambda: t(2, 3).sum(2),
        IndexError,
        "dim 2 is out of range for a 2-dimensional tensor; it has dims -2 to 1",
    ),
    "a dim twice": (lambda: t(2, 3).sum((0, 0)), RuntimeError, "twice"),
    "max of nothing": (lambda: t(0, 3).max(), RuntimeError, "max"),
    "cat of other shapes": (lambda: tt.cat([t(2, 3), t(2, 4)], 0), RuntimeError, "cat"),
    "stack of other shapes": (lambda: tt.stack([t(2), t(3)]), RuntimeError, "stack"),
    "index out of range": (lambda: t(3)[5], IndexError, "5"),
    "too many indices": (lambda: t(3)[0, 0], IndexError, "getitem: 2 indices for a 1-dimensional tensor"),
    "a list of words in arithmetic": (lambda: t(3) + ["a"], TypeError, "does not hold numbers"),
    "a numpy array as an argument": (lambda: tt.add(t(3), np.ones(3)), TypeError, r"from_numpy\(...\)"),
    "item of many": (lambda: t(3).item(), RuntimeError, r"item: shape \(3,\) holds 3 values"),
    "truth of many": (lambda: bool(t(3)), RuntimeError, "ambiguous"),
    "len of a scalar": (lambda: len(tt.tensor(1.0)), TypeError, "0-d"),
    "label out of range": (lambda: F.cross_entropy(t(2, 3), tt.tensor([0, 3])), IndexError, r"cross_entropy: .*3"),
    "negative label": (lambda: F.cross_entropy(t(2, 3), tt.tensor([0, -1])), IndexError, "cross_entropy: .*-1"),
    "embedding out of range": (lambda: F.embedding(tt.tensor([4]), t(4, 2)), IndexError, "embedding"),
    "gather out of range": (lambda: tt.gather(t(3), 0, tt.tensor([3])), IndexError, "gather"),
    "conv channels": (lambda: F.conv2d(t(1, 3, 5, 5), t(2, 4, 3, 3)), RuntimeError, "conv2d: .*3.*4"),
    "conv kernel larger than input": (lambda: F.conv2d(t(1, 1, 2, 2), t(1, 1, 3, 3)), RuntimeError, "conv2d"),
    "pool padding": (lambda: F.max_pool2d(t(1, 1, 4, 4), 2, padding=2), RuntimeError, "max_pool2d"),
    "int into float out": (lambda: tt.ones(2, dtype=tt.int64).add_(1.5), TypeError, "float32 and does not fit into int64"),
    "in place, larger": (lambda: t(2).add_(t(3, 2)), RuntimeError, r"does not fit into \(2,\)"),
    "uint64 with int64": (lambda: t(1, dtype=tt.uint64) + t(1, dtype=tt.int64), TypeError, "no common type"),
    "a type that is none": (lambda: tt.ones(2, dtype="float99"), TypeError, "float99"),
    "a device that is none": (lambda: tt.ones(2, device="tpu"), TypeError, "tpu"),
    "mixed devices": (lambda: t(2) + t(2).to("cuda"), TypeError, r"add: a on cpu, b on cuda:0: .*\.to\('cuda:0'\)"),
    "numpy of a cuda tensor": (lambda: t(2).to("cuda").numpy(), TypeError, r"\.cpu\(\)\.numpy\(\)"),
    "ragged data": (lambda: tt.tensor([[1.0], [1.0, 2.0]]), ValueError, "tensor"),
    "strings": (lambda: tt.tensor(["a"]), TypeError, "does not hold numbers"),
    "expand": (lambda: t(2, 3).expand(4, 3), RuntimeError, r"expand: .*size 2 cannot become 4"),
    "negative size": (lambda: tt.zeros(-1), RuntimeError, "-1"),
    "bools subtracted": (
        lambda: t(2, dtype=tt.bool) - t(2, dtype=tt.bool),
        TypeError,
        "sub: a is bool; sub takes uint, int, float, complex types",
    ),
    "bits of floats": (
        lambda: t(2) & t(2),
        TypeError,
        r"bitwise_and: a is float32; bitwise_and takes bool, uint, int types; cast it with .to\(int64\)",
    ),
    "bits of a float": (lambda: ~t(2), TypeError, "bitwise_not: x is float32; bitwise_not takes bool, uint, int types"),
    "nothing to join": (lambda: tt.cat([]), RuntimeError, "cat: no tensors were given"),
    "a gradient of another shape": (
        lambda: setattr(t(2), "grad", t(3)),
        RuntimeError,
        r"grad: float32 \(3,\) on cpu for a tensor of float32 \(2,\)",
    ),
    "a gradient of another type": (
        lambda: setattr(t(2), "grad", t(2, dtype=tt.float64)),
        RuntimeError,
        "grad: float64 .* has its tensor's shape, dtype",
    ),
    "a number for a gradient": (lambda: setattr(t(2), "grad", 5), TypeError, "grad: int is not a tensor"),
    "softmax of integers": (lambda: F.softmax(t(2, dtype=tt.int64), dim=0), TypeError, "softmax"),
}


@each("case", CASES)
def test_message(case: str) -> None:
    call, kind, message = CASES[case]
    with pytest.raises(kind, match=message) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text.strip(), f"more than one line: {text}"
    assert type(caught.value).__module__ in ("tritensor.errors", "builtins"), f"{type(caught.value)} is not ours"


@pytest.mark.parametrize(
    ("mistake", "kind"),
    [
        (lambda: F.embedding(tt.tensor([0]), tt.ones(4, 2), padding_idx=4), AssertionError),
        (lambda: F.embedding_bag(tt.tensor([[0]]), tt.ones(4, 2), padding_idx=-5), AssertionError),
        (lambda: tt.nn.Embedding(4, 2, padding_idx=4), AssertionError),
        (lambda: tt.nn.Embedding(4, 2, _weight=tt.ones(3, 2)), AssertionError),
        (lambda: tt.nn.Embedding.from_pretrained(tt.ones(3)), AssertionError),
        (lambda: tt.nn.Hardtanh(1.0, 1.0), AssertionError),
        (lambda: tt.autograd.functional.jacobian(tt.exp, tt.ones(2), strategy="sideways"), AssertionError),
        (lambda: tt.data.TensorDataset(tt.ones(2), tt.ones(3)), AssertionError),
        (lambda: tt.data.ConcatDataset([]), AssertionError),
        (lambda: F.pad(tt.ones(2), (1, 1), mode="mirror"), NotImplementedError),
        (lambda: F.pad(tt.ones(2), (1, 1), mode="reflect"), NotImplementedError),
    ],
)
def test_a_mistake_is_of_the_class_that_pytorch_raises(mistake, kind):
    with pytest.raises(kind) as raised:
        mistake()
    assert not isinstance(raised.value, AssertionError) or isinstance(raised.value, ValueError)
