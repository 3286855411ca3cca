"""Refusals of functions of shapes, types, sequences and windows, each in its own line, word for word."""

from __future__ import annotations

import pytest

import tritensor as tt
from tests.loops import each

META = ", and a tensor on device meta has none; make it where there is memory, module.to_empty(device='cpu') or empty_like(x, device='cpu'), and fill it"
ROWS = [
    ("T.slice_copy(T.ones(3), 0, 0, 2, -1)", "ArgumentError", "slice_copy: step is -1; give a positive one"),
    ("T.slice_copy(T.tensor(1.0))", "IndexError", "slice_copy: a 0-d tensor has no dimension to slice; reshape it to (1,)"),
    ("T.cat(T.ones(2))", "TypeError", "cat: tensors is a tensor; give a tuple or list of them (x.unbind() makes one of a tensor's slices)"),
    (
        "T.cat((a := T.ones(2), a), out=a)",
        "ShapeError",
        "cat: out shares memory with tensor 0, which would be overwritten as it is read; give another out",
    ),
    ("T.narrow(T.tensor(1.0), 0, 0, 1)", "ShapeError", "narrow: a 0-d tensor has no dimension to narrow; reshape it to (1,)"),
    ("T.narrow(T.ones(3), 0, 1, 4)", "OutOfRangeError", "narrow: start 1, length 4 do not lie in dim 0 of size 3; give a range inside"),
    ("T.cartesian_prod(T.ones(2), T.ones(2, 2))", "ShapeError", "cartesian_prod: tensor 1 has shape (2, 2); give vectors"),
    ("T.cartesian_prod()", "ShapeError", "cartesian_prod: no tensors were given; it needs at least one"),
    ("T.combinations(T.ones(2, 2))", "ShapeError", "combinations: input has shape (2, 2); give a vector"),
    ("T.combinations(T.ones(2), -1)", "ShapeError", "combinations: r is -1; choose 0 elements or more"),
    (
        "T.block_diag(T.ones(2), T.ones(1, 2, 3))",
        "ShapeError",
        "block_diag: tensor 1 has shape (1, 2, 3); give matrices, vectors or single values",
    ),
    (
        "T.ones(2, 3).sum_to_size(2)",
        "ShapeError",
        "sum_to_size: (2,) does not broadcast to input's shape (2, 3); each of its sizes must be input's, or 1",
    ),
    ("T.diag_embed(T.ones(2), 0, 1, 1)", "ShapeError", "diag_embed: dim1 1 and dim2 1 are one dimension; name two"),
    ("T.ones(4).reshape(-1, -1)", "ShapeError", "reshape: shape (-1, -1) may hold one -1, and no other negative size; give the others"),
    (
        "T.lu_unpack(T.ones(3), T.ones(3, dtype=T.int32))",
        "ShapeError",
        "lu_unpack: LU_data (3,) is no matrix, and no batch of them; give such a one",
    ),
    (
        "T.grid_sampler_2d(T.ones(1, 1, 2, 2), T.zeros(1, 1, 1, 2), 0, 5, True)",
        "ArgumentError",
        "grid_sampler_2d: padding_mode is 5; give 0 to 2: zeros, border, reflection",
    ),
    ("T.linalg.pinv(T.eye(2), atol=T.tensor(1j))", "DTypeError", "pinv: a tolerance is complex64; it must be real"),
    (
        "T.addmm(T.ones(2, 2), T.ones(2, 3), T.ones(4, 2))",
        "ShapeError",
        "addmm: mat1 (2, 3) @ mat2 (4, 2): mat1's last size 3 is not mat2's first 4; transpose one, or reshape it",
    ),
    ("T.ones(2).resize_(-1)", "ShapeError", "resize_: shape (-1,) has a negative size"),
    (
        "T.ones(2, requires_grad=True).resize_(3)",
        "GradError",
        "resize_: the tensor requires grad, and the graph would not see its new memory; use it on x.detach()",
    ),
    (
        "T.ones(2).resize_(2, memory_format=T.preserve_format)",
        "ArgumentError",
        "resize_: preserve_format says nothing of a new shape; give contiguous_format or channels_last",
    ),
    ("T.ones(2).set_(T.ones(2).double())", "DTypeError", "set_: input is float32, source float64; give a source of input's type"),
    ("T.repeat_interleave(T.ones(3), T.tensor([1.0, 2.0, 1.0]))", "DTypeError", "repeat_interleave: repeats are float32; give integers"),
    (
        "T.repeat_interleave(T.ones(3), T.tensor([1, 2, 1]), output_size=5)",
        "ShapeError",
        "repeat_interleave: output_size is 5, the repeats add up to 4; leave it out, or give that",
    ),
    (
        "T.empty_strided((2, 3), (1,))",
        "ShapeError",
        "empty_strided: size (2, 3) and stride (1,) differ in length; give a stride for each dimension",
    ),
    ("T.empty_strided((2,), (-1,))", "ShapeError", "empty_strided: size (2,) and stride (-1,) must be 0 or more"),
    (
        "T.empty_permuted((2, 3), (0, 0))",
        "ShapeError",
        "empty_permuted: physical_layout (0, 0) must name each of the 2 dimensions of (2, 3) once",
    ),
    ('T.frombuffer(b"", dtype=T.int8)', "ArgumentError", "frombuffer: the buffer has 0 bytes, count is -1; neither may be 0"),
    ('T.frombuffer(b"123", dtype=T.int16)', "ArgumentError", "frombuffer: 3 bytes are no whole number of int16, of 2 bytes; give a count"),
    ('T.frombuffer(b"123", dtype=T.int8, count=4)', "ArgumentError", "frombuffer: 4 elements of int8 need 4 bytes, 3 are there"),
    ('T.frombuffer(b"123", dtype=T.int8, offset=3)', "ArgumentError", "frombuffer: offset 3 does not lie in the buffer of 3 bytes"),
    (
        "T.normal(T.zeros(2), T.ones(3))",
        "ShapeError",
        "normal: mean (2,), std (3,): sizes 2 and 3 at dim -1 do not broadcast. The size of tensor a (2) must match the size of tensor b (3), or be 1",
    ),
    (
        "T.normal(T.zeros(6), T.ones(2, 3))",
        "ShapeError",
        "normal: mean (6,), std (2, 3): sizes 6 and 3 at dim -1 do not broadcast. The size of tensor a (6) must match the size of tensor b (3), or be 1",
    ),
    (
        "T.linalg.pinv(T.ones(4, 2, 3), rtol=T.ones(5))",
        "ShapeError",
        "pinv: the batch (4,), atol (), rtol (5,): sizes 4 and 5 at dim -1 do not broadcast. "
        "The size of tensor a (4) must match the size of tensor b (5), or be 1",
    ),
    (
        "T.linalg.matrix_rank(T.ones(4, 2, 3), atol=T.ones(5))",
        "ShapeError",
        "matrix_rank: the batch (4,), atol (5,), rtol (5,): sizes 4 and 5 at dim -1 do not broadcast. "
        "The size of tensor a (4) must match the size of tensor b (5), or be 1",
    ),
    ("T.threshold(T.ones(2), T.ones(3), 1.0)", "ShapeError", "threshold: threshold has shape (3,); give a number"),
    ("T.nn.functional.threshold(T.ones(2), 0.5, T.ones(3))", "ShapeError", "threshold: value has shape (3,); give a number"),
    ("T.chain_matmul([T.ones(2, 2)])", "TypeError", "chain_matmul: argument 0 is a list; give matrices one by one, chain_matmul(a, b, c)"),
    ("T.isin(T.ones(2), (1, 2))", "TypeError", "isin: test_elements is a tuple; give a tensor or a number"),
    (
        "T.lstm_cell(T.ones(2, 3), [T.ones(2, 3)] * 3, T.ones(12, 3), T.ones(12, 3))",
        "ShapeError",
        "lstm_cell: hx has 3 parts; give a pair (h, c), each (batch, size)",
    ),
    ("T.linspace(T.ones(2), 1, 3)", "ShapeError", "linspace: start has shape (2,); give a number or a 0-d tensor"),
    ("T.linspace(0, 1, 2.0)", "TypeError", "linspace: steps is a float; give an int"),
    ("T.linspace(0, 1j, 3, dtype=T.float32)", "ArgumentError", "linspace: an end is complex, float32 is not; give dtype=complex64"),
    ('T.linspace(0, 1j, 3, device="cuda")', "DTypeError", "linspace: complex numbers live on the CPU only; make them there"),
    ("T.logspace(0, 1, -1)", "ShapeError", "logspace: steps -1 is negative; give 0 or more"),
    ("T.arange(0, 3, 0.5, dtype=T.int64)", "ArgumentError", "arange: step 0.5 is 0 in int64; give 1 or more, or a floating dtype"),
    ('T.arange(0, float("inf"), 0.5, dtype=T.int64)', "ArgumentError", "arange: from 0 to inf by 0.5: all three must be finite"),
    ("T.vander(T.ones(2, 2))", "ShapeError", "vander: input has shape (2, 2); give a vector"),
    ("T.vander(T.ones(2), -1)", "ShapeError", "vander: N is -1; it must be 0 or more"),
    ("T.tril_indices(-1, 2)", "ShapeError", "tril_indices: row -1, col 2; they must be 0 or more"),
    (
        "T.triu_indices(2, 2, dtype=T.float32)",
        "ArgumentError",
        "triu_indices: dtype is tritensor.float32; indices are integers, give int32 or int64",
    ),
    ("T.hann_window(-1)", "ShapeError", "hann_window: length -1; it must be 0 or more"),
    ("T.hann_window(2.5)", "TypeError", "hann_window: the length is a float; give an int"),
    ("T.hann_window(3, dtype=T.int32)", "DTypeError", "hann_window: int32 cannot hold a window; give a floating dtype"),
    ("T.signal.windows.hann(3, dtype=T.float16)", "ArgumentError", "hann: dtype is tritensor.float16; give float32 or float64"),
    ("T.signal.windows.gaussian(3, std=0)", "ArgumentError", "gaussian: std is 0; it must be above 0"),
    (
        "T.signal.windows.exponential(3, center=1)",
        "ArgumentError",
        "exponential: center is 1, but a symmetric window's is its middle; give sym=False, or no center",
    ),
    ("T.signal.windows.general_cosine(3, a=[])", "ArgumentError", "general_cosine: a is empty; give at least one number"),
    ("T.signal.windows.general_cosine(3, a=3)", "TypeError", "general_cosine: a is 3; give a list of numbers"),
    ("T.signal.windows.kaiser(3, beta=-1)", "ArgumentError", "kaiser: beta is -1; it must be 0 or more"),
    ("T.finfo(T.int8)", "TypeError", "finfo: tritensor.int8 is not a floating type; use iinfo"),
    ("T.iinfo(T.float32)", "TypeError", "iinfo: tritensor.float32 is not an integer type; use finfo"),
    ("T.iinfo(T.bool)", "TypeError", "iinfo: tritensor.bool is not an integer type; it holds False and True"),
    ("T.int8.to_complex()", "DTypeError", "to_complex: no complex type has parts of int8; float32 and float64 have one"),
    (
        "T.promote_types(T.float8_e5m2, T.float32)",
        "DTypeError",
        "promote_types: float8_e5m2 and float32 have no common type; cast one of them with .to(...)",
    ),
    ('T.result_type("a", 2)', "TypeError", "result_type: tensor is a str; give a tensor or a number (tritensor.tensor(...))"),
    ("T.is_nonzero(T.ones(2))", "ShapeError", "is_nonzero: shape (2,) holds 2 values, not one; use .any() or .all()"),
    ('T.FloatTensor("abc")', "TypeError", "FloatTensor: 'abc' is no sequence; give a list of values, or sizes"),
    ("T.FloatTensor(2, -1)", "ShapeError", "FloatTensor: shape (2, -1) has a negative size"),
    ("T.FloatTensor(T.ones(2).int())", "DTypeError", "FloatTensor: the tensor is int32 on cpu; use .type(FloatTensor)"),
    (
        'T.ones(2).type("torch.Float")',
        "ArgumentError",
        "type: 'torch.Float' is no type of tensors; give a dtype, or a name like 'tritensor.FloatTensor'",
    ),
    (
        "T.set_default_tensor_type(T.LongTensor)",
        "TypeError",
        "set_default_tensor_type: <class 'tritensor.LongTensor'> is not a floating typed class; give one like DoubleTensor, or use set_default_dtype",
    ),
    (
        "T.complex(T.ones(2), T.ones(2), out=T.ones(2).cdouble())",
        "DTypeError",
        "complex: out is complex128, the result complex64; give an out of that type",
    ),
    ("T.polar(T.ones(2), T.ones(2).double())", "DTypeError", "polar: abs is float32, angle float64; both must be float32, or both float64"),
    ("T.tensor(1).chunk(2)", "IndexShapeError", "chunk: a 0-d tensor has no dimension 0; reshape it to (1,)"),
    ("T.tensor(1).split(1)", "IndexShapeError", "split: a 0-d tensor has no dimension 0; reshape it to (1,)"),
    ("T.tensor(1).split_with_sizes([1])", "IndexShapeError", "split_with_sizes: a 0-d tensor has no dimension 0; reshape it to (1,)"),
    ("T.tensor_split(T.tensor(1), 2)", "IndexShapeError", "tensor_split: a 0-d tensor has no dimension 0; reshape it to (1,)"),
    ("T.tensor(1).unflatten(0, (1,))", "IndexShapeError", "unflatten: a 0-d tensor has no dimension 0; reshape it to (1,)"),
    ("T.trapezoid(T.tensor(1.0))", "IndexShapeError", "trapezoid: a 0-d tensor has no dimension -1; reshape it to (1,)"),
    (
        "T.cumulative_trapezoid(T.tensor(1.0))",
        "IndexShapeError",
        "cumulative_trapezoid: a 0-d tensor has no dimension -1; reshape it to (1,)",
    ),
    ("T.tensor(1).stride(0)", "IndexShapeError", "stride: a 0-d tensor has no dimension 0; reshape it to (1,)"),
    ("T.ones(2).stride(3)", "IndexError", "stride: dim 3 is out of range for a 1-dimensional tensor; it has dims -1 to 0"),
    ("T.ones(1, 1).squeeze((0, -2))", "ShapeError", "squeeze: dim (0, -2) names a dimension twice; name each once"),
    (
        "T.tensordot(T.ones(2, 3), T.ones(3, 2), ([5], [0]))",
        "IndexError",
        "tensordot: dim 5 is out of range for a 2-dimensional tensor; it has dims -2 to 1",
    ),
    (
        "T.tensordot(T.ones(2, 2), T.ones(2, 2), ([1, -1], [0, 1]))",
        "ShapeError",
        "tensordot: dims [1, -1] name a dimension twice; name each once",
    ),
    (
        "T.tensordot(T.ones(2, 2), T.ones(2, 2), ([1], [0], [1]))",
        "ShapeError",
        "tensordot: dims ([1], [0], [1]) are 3 lists; give two, of a's dimensions and of b's",
    ),
    ("T.ones(3).__delitem__(0)", "TypeError", "delitem: a tensor keeps all its elements; index those that stay, as x[1:]"),
    ('T.ones(2, device="meta").to("cpu")', "MetaError", "to: a copy to cpu asks for values" + META),
    ('T.ones(2, device="meta").tolist()', "MetaError", "tolist: the values are asked for" + META),
    (
        'T.ones(2, device="meta").nonzero()',
        "MetaError",
        "nonzero: how many elements are True, or not 0, is the size of the result" + META,
    ),
    (
        'T.ones(2, device="meta") + T.ones(2)',
        "DeviceError",
        "add: a on meta, b on cpu: all tensors must be on one device; move the others with .to('meta')",
    ),
    ('T.set_default_device("tpu")', "DeviceError", "set_default_device: 'tpu' is not a device; give 'cpu', 'cuda' or 'cuda:N'"),
]


@each(("call", "error", "words"), ROWS)
def test_refused_in_these_words(call: str, error: str, words: str) -> None:
    with pytest.raises(Exception) as caught:
        eval(call, {"T": tt})
    assert (type(caught.value).__name__, str(caught.value)) == (error, words)
