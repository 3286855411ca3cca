"""Refusals of an op's shape rule: sizes, types and numbers that do not fit together, each in a message that says what does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.loops import each
from tritensor.ops.table import Spec, registry

F32, F64, I64, BOOL, C64 = (np.dtype(n) for n in ("float32", "float64", "int64", "bool", "complex64"))
PLAIN: dict[str, Any] = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
POOL: dict[str, Any] = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "ceil_mode": False}
SPREAD = POOL | {"size": (4, 4), "count_include_pad": True}
MAX = {k: v for k, v in POOL.items() if k != "ceil_mode"} | {"size": (4, 4), "dilation": (1, 1)}
ADAM: dict[str, Any] = {"lr": 0.1, "beta1": 0.9, "beta2": 0.9, "eps": 1e-8}


def f(*shape: int) -> Spec:
    return Spec(shape, F32)


def of(dtype: np.dtype, *shape: int) -> Spec:
    return Spec(shape, dtype)


# op: (inputs, attributes, error, what the message says)
REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ("view_as_complex", (of(np.dtype("float16"), 3, 2),), {}, tt.DTypeError, "view_as_complex: x is float16; it takes float32 and float64"),
    ("conv2d", (f(1, 2, 5, 5), f(3, 2, 0, 2)), PLAIN, tt.ShapeError, r"conv2d: .*weight \(3, 2, 0, 2\): weight has a size of 0"),
    ("conv2d_input", (f(1, 3, 4), f(3, 2, 2, 2)), PLAIN | {"size": (5, 5)}, tt.ShapeError, r"conv2d_input: g \(1, 3, 4\), .* g must be \(N, O, OH, OW\)"),
    ("conv2d_input", (f(1, 3, 4, 4), f(3, 2, 2)), PLAIN | {"size": (5, 5)}, tt.ShapeError, r"conv2d_input: .*weight \(3, 2, 2\)"),
    ("conv2d_weight", (f(1, 2, 5), f(1, 3, 4, 4)), PLAIN | {"kernel_size": (2, 2)}, tt.ShapeError, r"conv2d_weight: x \(1, 2, 5\), g .* x must be"),
    ("conv2d_weight", (f(1, 2, 5, 5), f(3, 4, 4)), PLAIN | {"kernel_size": (2, 2)}, tt.ShapeError, r"conv2d_weight: .*g \(3, 4, 4\)"),
    ("clamp", (of(C64, 2), 0, 1), {}, tt.DTypeError, "clamp: complex64 has no order; it takes .*float"),
    ("where", (of(BOOL, 2), of(I64, 2), 1.5), {}, tt.DTypeError, r"where: 1.5 does not fit a int64 tensor; cast the tensor with .to\('float32'\)"),
    ("embedding", (f(3, 4, 5), of(I64, 2)), {"padding_idx": None}, tt.ShapeError, r"embedding: weight \(3, 4, 5\) is not \(number of rows, width\)"),
    ("embedding", (f(3, 4), of(I64, 2)), {"padding_idx": 3}, IndexError, "embedding: padding_idx 3 is out of range for 3 rows"),
    ("embedding", (f(3, 4), of(I64, 2)), {"padding_idx": -1}, IndexError, "embedding: padding_idx -1 is out of range for 3 rows"),
    ("embedding", (f(3, 4), of(F32, 2)), {"padding_idx": None}, tt.DTypeError, "embedding: index is float32; cast it to an integer type"),
    ("gather", (f(3, 4), of(I64, 4, 1)), {"dim": 1}, tt.ShapeError, r"gather: index \(4, 1\) is larger than x \(3, 4\) at dim 0: 4 > 3"),
    ("gather", (f(3, 4), of(I64, 3)), {"dim": 0}, tt.ShapeError, r"gather: x \(3, 4\) and index \(3,\) differ in their number of dimensions"),
    ("scatter", (f(3, 4), of(I64, 3, 4), f(3, 3)), {"dim": 1}, tt.ShapeError, r"scatter: index \(3, 4\) is larger than source \(3, 3\)"),
    ("scatter", (f(3, 4), of(I64, 3, 4), f(4)), {"dim": 1}, tt.ShapeError, r"scatter: index \(3, 4\) is larger than source \(4,\)"),
    ("scatter_add", (f(3, 4), of(I64, 3, 4), of(F64, 3, 4)), {"dim": 1}, tt.DTypeError, "scatter_add: source is float64, x is float32; cast one of them"),
    ("index_get", (f(3, 4), of(I64, 2), of(I64, 3)), {"dims": (0, 1), "front": False}, IndexError, r"getitem: indices of shapes \(2,\), \(3,\) do not broadcast together"),
    ("index_get", (f(3, 4), of(I64, 2)), {"dims": (0, 1), "front": False}, tt.ShapeError, r"getitem: 1 index arrays for dims \(0, 1\); give one for each"),
    ("index_get", (f(3, 4),), {"dims": (), "front": False}, tt.ShapeError, r"getitem: 0 index arrays"),
    ("index_put", (f(3, 4), f(3, 4), of(I64, 2)), {"dims": (0,), "front": False}, tt.ShapeError, r"setitem: value \(3, 4\) for indexed elements of shape \(2, 4\)"),
    ("cross_entropy", (f(), of(I64)), {}, tt.ShapeError, r"cross_entropy: x \(\) has no dim of classes"),
    ("cross_entropy", (f(2, 3), of(I64, 3)), {}, tt.ShapeError, r"labels \(3,\): labels must have shape \(2,\)"),
    ("cross_entropy", (f(2, 3), f(3, 2)), {}, tt.ShapeError, r"probabilities \(3, 2\): they must have x's shape; for labels give integers of shape \(2,\)"),
    ("cross_entropy", (f(2, 3), of(BOOL, 2)), {}, tt.DTypeError, "cross_entropy: target is bool; give integer labels or probabilities"),
    ("cross_entropy", (f(2, 3), of(I64, 2), f(2)), {}, tt.ShapeError, r"weight \(2,\): weight must have shape \(3,\), one per class"),
    ("cross_entropy", (f(2, 3), of(I64, 2)), {"label_smoothing": 1.5}, tt.ArgumentError, "label_smoothing 1.5 is not between 0 and 1"),
    ("cross_entropy", (f(2, 3), of(I64, 2)), {"label_smoothing": -0.5}, tt.ArgumentError, "label_smoothing -0.5 is not between 0 and 1"),
    ("layer_norm", (f(2, 3),), {"axes": 3}, tt.ShapeError, r"layer_norm: x \(2, 3\) has 2 dims, normalising the last 3 of them is not possible"),
    ("layer_norm", (f(2, 3),), {"axes": 0}, tt.ShapeError, "normalising the last 0 of them"),
    ("layer_norm", (f(2, 3), f(2)), {}, tt.ShapeError, r"weight \(2,\): weight must have the normalised shape \(3,\)"),
    ("adam_numbers", (f(2, 2), f(2, 1)), ADAM, tt.ShapeError, r"adam_numbers: numbers \(2, 2\) and scalars \(2, 1\); they are \(n, 7\) and \(n, 1\)"),
    ("adam_numbers", (f(3, 7), f(2, 1)), ADAM, tt.ShapeError, r"numbers \(3, 7\) and scalars \(2, 1\); they are"),
    ("sgd_numbers", (f(2, 3),), {"lr": 0.1}, tt.ShapeError, r"sgd_numbers: numbers \(2, 3\); they are \(n, 2\)"),
    ("sgd_numbers", (f(2, 2), f(2)), {"lr": 0.1}, tt.ShapeError, r"sgd_numbers: rate has shape \(2,\); a learning rate is one number"),
    ("sgd_numbers", (f(2, 2), of(I64)), {"lr": 0.1}, tt.DTypeError, "sgd_numbers: rate is int64"),
    ("adam_step", (f(2), f(2), f(2), f(2), f(2)), {}, tt.ShapeError, r"adam_step: numbers is float32 of shape \(2,\); it takes 7 floating numbers"),
    ("adam_step", (f(2), f(2), f(2), f(2), of(I64, 7)), {}, tt.ShapeError, r"adam_step: numbers is int64 of shape \(7,\)"),
    ("adam_step", (f(2), f(2), f(3), f(2), f(7)), {}, tt.ShapeError, r"adam_step: exp_avg \(3,\) for a parameter of shape \(2,\); both must be the same"),
    ("rms_norm", (f(2, 3),), {"axes": 3}, tt.ShapeError, r"rms_norm: x \(2, 3\) has 2 dims, normalising the last 3 of them is not possible"),
    ("rms_norm", (f(2, 3), f(2)), {}, tt.ShapeError, r"weight \(2,\): weight must have the normalised shape \(3,\)"),
    ("batch_norm", (f(3),), {}, tt.ShapeError, r"batch_norm: x \(3,\) has 1 dims; give \(batch, channels, ...\)"),
    ("batch_norm", (f(2, 3), None, f(2)), {}, tt.ShapeError, r"x \(2, 3\) has 3 channels, bias is \(2,\); give one number for each, \(3,\)"),
    ("batch_norm_by", (f(2, 3), f(3), f(1)), {}, tt.ShapeError, r"x \(2, 3\) has 3 channels, var is \(1,\); give one number for each, \(3,\)"),
    ("batch_norm_activation", (f(2, 3), f(3), f(2)), {}, tt.ShapeError, r"x \(2, 3\) has 3 channels, bias is \(2,\); give one number for each, \(3,\)"),
    ("batch_norm_by_activation", (f(2, 3), f(3), f(3), f(3), f(3), f(2, 1)), {}, tt.ShapeError, r"residual \(2, 1\) is not of x's shape \(2, 3\); expand it"),
    ("group_norm_activation", (f(2, 3), f(3), f(3)), {"groups": 2}, tt.ShapeError, r"x \(2, 3\) has 3 channels, which 2 groups do not share evenly"),
    ("group_norm", (f(3),), {"groups": 1}, tt.ShapeError, r"group_norm: x \(3,\) has 1 dims; give \(batch, channels, ...\)"),
    ("group_norm", (f(2, 3),), {"groups": 2}, tt.ShapeError, r"x \(2, 3\) has 3 channels, which 2 groups do not share evenly; give a divisor"),
    ("group_norm", (f(2, 4), f(2)), {"groups": 2}, tt.ShapeError, r"x \(2, 4\) has 4 channels, weight is \(2,\); give one number for each, \(4,\)"),
    ("avg_pool2d_spread", (f(2, 2, 2),), SPREAD, tt.ShapeError, r"avg_pool2d_spread: g \(2, 2, 2\): g must be \(N, C, OH, OW\)"),
    ("avg_pool2d_spread", (f(1, 2, 2, 3),), SPREAD, tt.ShapeError, r"a pooling of that size gives \(1, 2, 2, 2\), not g's shape"),
    ("max_pool2d_scatter", (f(1, 2, 2, 3), of(I64, 1, 2, 2, 2)), MAX, tt.ShapeError, r"max_pool2d_scatter: \(1, 2, 2, 3\) with indices .* must be \(1, 2, 2, 2\)"),
    ("max_pool2d_scatter", (f(1, 2, 2, 2), of(np.dtype(np.int32), 1, 2, 2, 2)), MAX, tt.DTypeError, "max_pool2d_scatter: indices int32: they must be int64"),
    ("stack", (), {"dim": 0}, tt.ShapeError, "stack: no tensors were given; it needs at least one"),
    ("cat", (), {"dim": 0}, tt.ShapeError, "cat: no tensors were given; it needs at least one"),
    ("cat", (f(), f()), {"dim": 0}, tt.ShapeError, "cat: 0-dimensional tensors cannot be joined; use stack"),
    ("cat", (f(2, 3), f(3)), {"dim": 0}, tt.ShapeError, r"cat: tensor 1 is \(3,\), tensor 0 is \(2, 3\); their sizes must agree outside dim 0"),
    ("stack", (f(2), f(3)), {"dim": 0}, tt.ShapeError, r"stack: tensor 1 is \(3,\), tensor 0 is \(2,\); their sizes must agree$"),
    ("roll", (f(2, 3),), {"shifts": (1,), "dims": (2,)}, IndexError, "roll: dim 2 of a tensor of 2 dimensions; leave dims out"),
    ("roll", (f(2, 3),), {"shifts": (1,), "dims": (-1,)}, IndexError, "roll: dim -1 of a tensor"),
    ("pad_view", (f(3),), {"shape": (4,), "index": (slice(0, 2),)}, tt.ShapeError, r"pad_view: x \(3,\) is not what .* which is \(2,\)"),
    ("pad_diagonal", (f(2),), {"shape": (3, 3), "offset": 0, "dim1": 0, "dim2": 1}, tt.ShapeError, r"pad_diagonal: x \(2,\) is not the diagonal of shape \(3, 3\), which is \(3,\)"),
    ("permute", (f(2, 3),), {"dims": (0,)}, tt.ShapeError, r"permute: dims \(0,\) of x \(2, 3\): each of its 2 dims must be named once"),
    ("permute", (f(2, 3),), {"dims": (1, 1)}, tt.ShapeError, "must be named once"),
    ("as_strided", (f(2, 3),), {"shape": (2,), "strides": (1,), "offset": 0}, tt.ShapeError, r"as_strided: x \(2, 3\) is not one-dimensional"),
    ("as_strided", (f(6),), {"shape": (2, 2), "strides": (1,), "offset": 0}, tt.ShapeError, "differ in length"),
    ("as_strided", (f(6),), {"shape": (2, 3), "strides": (3, 1), "offset": 1}, tt.ShapeError, "read elements 1 to 6 of x's 6"),
    ("as_strided", (f(6),), {"shape": (0,), "strides": (1,), "offset": 7}, tt.ShapeError, "offset 7 lies outside x's 6 elements"),
    ("as_strided", (f(6),), {"shape": (0,), "strides": (1,), "offset": -1}, tt.ShapeError, "offset -1 lies outside"),
    ("unfold", (f(),), {"dim": 0, "size": 1, "step": 1}, tt.ShapeError, "unfold: a 0-dimensional tensor has no dimension to unfold"),
    ("unfold", (f(4),), {"dim": 0, "size": 5, "step": 1}, tt.ShapeError, r"unfold: size 5, step 1 along dim 0 of x \(4,\); size must be 0 to 4"),
    ("unfold", (f(4),), {"dim": 0, "size": 2, "step": 0}, tt.ShapeError, "step positive"),
    ("index_view", (f(2, 3),), {"index": (0, 1, 0)}, IndexError, r"getitem: 3 indices for a 2-dimensional tensor of shape \(2, 3\)"),
    ("index_view", (f(2, 3),), {"index": (None, 0, 1, None, 0)}, IndexError, "getitem: 3 indices for a 2-dimensional"),
    ("index_view", (f(2, 3),), {"index": (2,)}, IndexError, "getitem: index 2 is out of range for dim 0 of size 2"),
    ("index_view", (f(2, 3),), {"index": (0, -4)}, IndexError, "getitem: index -4 is out of range for dim 1 of size 3"),
    ("arange", (), {"start": 0.0, "end": float("inf"), "step": 1.0, "dtype": F32, "device": None}, tt.ArgumentError, "arange: from 0.0 to inf by 1.0: all three must be finite"),
    ("arange", (), {"start": 0, "end": 3, "step": 0, "dtype": I64, "device": None}, tt.ArgumentError, "arange: step is 0"),
    ("cast", (of(C64, 2),), {"dtype": F32}, tt.DTypeError, "cast: complex64 to float32 would drop the imaginary part"),
]  # fmt: skip


@each(("name", "inputs", "attrs", "error", "says"), REFUSED, ids=[f"{r[0]}-{k}" for k, r in enumerate(REFUSED)])
def test_refused(name: str, inputs: tuple[Any, ...], attrs: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        registry[name].shape(*inputs, **attrs)


# What lies just inside of a bound that is refused above: op, inputs, attributes, the shape that comes out.
TAKEN: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("conv2d", (f(1, 2, 5, 5), f(3, 2, 1, 5)), PLAIN, (1, 3, 5, 1)),
    ("embedding", (f(3, 4), of(I64, 2)), {"padding_idx": 2}, (2, 4)),
    ("embedding", (f(3, 4), of(I64, 2)), {"padding_idx": 0}, (2, 4)),
    ("gather", (f(3, 4), of(I64, 3, 9)), {"dim": 1}, (3, 9)),
    ("scatter", (f(3, 4), of(I64, 3, 4), f(3, 4)), {"dim": 1}, (3, 4)),
    ("index_get", (f(3, 4), of(I64, 2, 1), of(I64, 3)), {"dims": (0, 1), "front": False}, (2, 3)),
    ("layer_norm", (f(2, 3),), {"axes": 2}, (2, 3)),
    ("layer_norm", (f(2, 3),), {"axes": 1}, (2, 3)),
    ("rms_norm", (f(2, 3), f(2, 3)), {"axes": 2}, (2, 3)),
    ("batch_norm", (f(2, 3, 1), f(3), f(3)), {}, (2, 3, 1)),
    ("batch_norm_by", (f(2, 3), f(3), f(3), None, f(3)), {}, (2, 3)),
    ("group_norm", (f(2, 4, 5), f(4)), {"groups": 4}, (2, 4, 5)),
    ("batch_norm_activation", (f(2, 3, 1), f(3), f(3), f(2, 3, 1)), {"activation": "gelu"}, (2, 3, 1)),
    ("batch_norm_by_activation", (f(2, 3), f(3), f(3), f(3), f(3)), {}, (2, 3)),
    ("group_norm_activation", (f(2, 4, 5), f(4), f(4)), {"groups": 2, "activation": "relu"}, (2, 4, 5)),
    ("as_strided", (f(6),), {"shape": (2, 3), "strides": (3, 1), "offset": 0}, (2, 3)),
    ("as_strided", (f(6),), {"shape": (0,), "strides": (1,), "offset": 6}, (0,)),
    ("as_strided", (f(6),), {"shape": (0, 2), "strides": (1, 9), "offset": 0}, (0, 2)),
    ("unfold", (f(4),), {"dim": 0, "size": 4, "step": 1}, (1, 4)),
    ("unfold", (f(4),), {"dim": 0, "size": 0, "step": 3}, (2, 0)),
    ("roll", (f(2, 3),), {"shifts": (1, 1), "dims": (0, 1)}, (2, 3)),
    ("index_view", (f(2, 3),), {"index": (1, -3)}, ()),
    ("index_view", (f(2, 3),), {"index": (-2, None, slice(5, None))}, (1, 0)),
    ("permute", (f(),), {"dims": ()}, ()),
]  # fmt: skip


@each(("name", "inputs", "attrs", "shape"), TAKEN, ids=[f"{r[0]}-{k}" for k, r in enumerate(TAKEN)])
def test_taken(name: str, inputs: tuple[Any, ...], attrs: dict[str, Any], shape: tuple[int, ...]) -> None:
    found = registry[name].shape(*inputs, **attrs)
    assert (found if isinstance(found, Spec) else found[0]).shape == shape
