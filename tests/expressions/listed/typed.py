"""Types: their limits, how they promote, tensors by typed class; sequences, windows, memory; further draws."""

from __future__ import annotations

_FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128")
_INTS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
_ALL = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e5m2",
)
EXPRESSIONS = [
    *[f"repr(T.finfo(T.{t}))" for t in _FLOATS], *[f"(lambda f: (f.bits, f.eps, f.max, f.min, f.tiny, f.smallest_normal, f.resolution, f.dtype))(T.finfo(T.{t}))" for t in _FLOATS],
    *[f"repr(T.iinfo(T.{t}))" for t in _INTS], *[f"(lambda f: (f.bits, f.max, f.min, f.dtype))(T.iinfo(T.{t}))" for t in _INTS],
    "T.finfo(T.int8)", "T.iinfo(T.float32)", "T.iinfo(T.bool)", "T.iinfo()", "T.finfo().dtype", "T.finfo(T.float32) == T.finfo(T.complex64)", "T.iinfo(T.int8) == T.iinfo(T.uint8)",
    *[f"T.promote_types(T.{a}, T.{b})" for a in _ALL for b in _ALL], *[f"T.can_cast(T.{a}, T.{b})" for a in _ALL for b in _ALL],
    "T.result_type(x, 2)", "T.result_type(i, 2.5)", "T.result_type(i, o)", "T.result_type(u, 300)", "T.result_type(k, i[0, 0])", "T.result_type(2, 3.5)", "T.result_type(f, x)", "T.result_type(T.ones(2).half(), T.tensor(1.5, dtype=T.float64))",
    "T.result_type(i, 2j)", "T.is_complex(x)", "T.is_complex(T.ones(2).cfloat())", "T.is_signed(x)", "u.is_signed()", "T.is_nonzero(o)", "o.is_nonzero()", "T.is_nonzero(x)", "T.is_same_size(x, y)", "x.is_same_size(m)", "T.is_conj(x)", "T.is_neg(x)",
    "x.is_conj()", "T.resolve_conj(x)", "T.resolve_neg(x)", "T.is_inference(x)", "T.is_storage(x)", "T.get_device(T.ones(2))", "T.float32.to_complex()", "T.complex128.to_real()", "T.int8.to_complex()",
    *[f"T.{t}Tensor([[1, 2.6], [0, -3]])" for t in ("Float", "Double", "Half", "BFloat16", "Char", "Short", "Int", "Long", "Bool")], "T.ByteTensor([1, 2])", "T.FloatTensor(2, 3).shape", "T.LongTensor(3).dtype", "T.FloatTensor()", "T.FloatTensor(T.Size([2])).shape",
    "T.FloatTensor(2.5)", "T.FloatTensor('a')", "T.FloatTensor(T.ones(2).int())", "T.FloatTensor(T.ones(2))", "isinstance(T.ones(2), T.FloatTensor)", "isinstance(T.ones(2), T.LongTensor)", "isinstance(T.ones(2), T.cuda.FloatTensor)", "isinstance(T.ones(2).half(), T.HalfTensor)",
    "T.ones(2).new(2, 3).shape", "T.ones(2).long().new([1, 2])", "T.FloatTensor.dtype", "T.FloatTensor.is_cuda", "T.ones(2).type().split('.')[1]", "T.ones(2).cfloat().type().split('.')[1]", "T.ones(2).to(T.float8_e5m2).type().split('.')[1]", "f.type('torch.LongTensor') if on == 'cpu' else f.long()", "T.ones(2).type(T.LongTensor)",
    "f.type(T.int8)", "f.type('torch.Float')", "f.type(T.Tensor) if on == 'cpu' else f", "T.typename(T.ones(2)).split('.')[1]", "T.typename(3)", "T.ones(2).cfloat()", "T.arange(3).cdouble()", "T.ones(2).cfloat().cfloat().dtype",
    "T.set_default_tensor_type(T.LongTensor)", "T.set_default_tensor_type(T.float64)", "T.get_default_device()", "(T.set_default_device('cpu'), T.ones(2))[1]", "(T.set_default_device(None), T.get_default_device())[1]",
    "T.range(0, 3)", "T.range(1, 2, 0.5)", "T.range(1, 0)", "T.arange(2.5, dtype=T.int64)", "T.arange(0.5, 3, 1.5, dtype=T.int64)", "T.arange(0, 3, 0.5, dtype=T.int64)", "T.arange(-1.5, 3.2, dtype=T.int32)", "T.linspace(T.tensor(0.0), T.tensor(1.0), 3)", "T.linspace(x, 1, 3)",
    "T.linspace(0, 1, 2.0)", "T.linspace(4.3, -3, 8, dtype=T.int64)", "T.linspace(0, 1 + 1j, 3)", "T.linspace(0, 1j, 3, dtype=T.float32)", "T.logspace(T.tensor(0.0), 2, 3)", "T.logspace(0, 1.2, 2, dtype=T.int64)", "T.logspace(0, -3, 5, base=0.5)", "T.logspace(0, 2, 5000)[::617]",
    "T.logspace(0, 2, -1)", "T.logspace(0, 2, 3, -2.0)", "T.vander(v)", "T.vander(v, 2)", "T.vander(v, 4, True)", "T.vander(n)", "T.vander(k[0])", "T.vander(x)", "T.vander(v, -1)", "T.vander(v, 0).shape", "T.tril_indices(3, 2)", "T.triu_indices(2, 3, 1)", "T.tril_indices(-1, 2)",
    "T.empty_strided((2, 3), (1, 2)).stride()", "T.empty_strided((2, 3), (1,))", "T.empty_strided((2,), (-1,))", "T.empty_permuted((2, 3, 4), (0, 2, 1)).stride()", "T.empty_permuted((2, 3), (0, 0))", "x.new_empty_strided((2, 2), (1, 2)).stride()",
    "T.frombuffer(bytearray(b'12345678'), dtype=T.int32)", "T.frombuffer(bytearray(b'12345678'), dtype=T.int8, count=3, offset=2)", "T.frombuffer(bytearray(b''), dtype=T.int8)", "T.frombuffer(bytearray(b'123'), dtype=T.int16)", "T.frombuffer(bytearray(b'123'), dtype=T.int8, count=4)",
    "T.frombuffer(bytearray(b'123'), dtype=T.int8, offset=3)", "T.complex(T.ones(2), T.zeros(2))", "T.complex(T.ones(2), T.ones(2).double())", "T.complex(T.ones(2).int(), T.ones(2))", "T.complex(T.ones(2, 1).double(), T.ones(3).double())", "T.polar(T.ones(2), T.tensor([0.0, 1.0]))",
    *[f"T.{w}_window({n}{a})" for w in ("hann", "hamming", "blackman", "bartlett", "kaiser") for n, a in ((5, ""), (6, ", periodic=False"), (0, ""), (1, ""), (4, ", dtype=T.float64"), (-1, ""), (4, ", dtype=T.int32"))],
    "T.hamming_window(5, True, 0.5, 0.4)", "T.kaiser_window(5, False, 3.5, dtype=T.float64)", "T.hann_window(4, device=on)", "T.hann_window(4, requires_grad=True)",
    *[f"T.signal.windows.{w}({n}{a})" for w in ("bartlett", "blackman", "cosine", "exponential", "gaussian", "general_hamming", "hamming", "hann", "kaiser", "nuttall") for n, a in ((5, ""), (6, ", sym=False, dtype=T.float64"), (0, ""), (1, ""), (-1, ""), (3, ", dtype=T.float16"))],
    "T.signal.windows.exponential(5, tau=0)", "T.signal.windows.exponential(5, center=1)", "T.signal.windows.exponential(5, center=1, tau=2.5, sym=False)", "T.signal.windows.gaussian(5, std=2.0)", "T.signal.windows.gaussian(5, std=-1.0)", "T.signal.windows.kaiser(5, beta=-1.0)",
    "T.signal.windows.general_cosine(6, a=[0.5, 0.3, 0.2], sym=False)", "T.signal.windows.general_cosine(6, a=[])", "T.signal.windows.general_cosine(6, a=3)", "T.signal.windows.hann(4, requires_grad=True)",
    "T.poisson(y).shape", "T.poisson(T.zeros(3))", "T.poisson(-T.ones(2))", "T.binomial(T.full((2,), 5.0), T.ones(2))", "T.binomial(T.full((2,), 5.0), T.zeros(2))",
    "T.ones(2).cauchy_().shape", "T.ones(2).cauchy_(0, -1)", "T.ones(2).geometric_(0.5).dtype", "T.ones(2).geometric_(1.5)", "T.ones(2).log_normal_().shape", "T.ones(2).log_normal_(0, -1)", "T.multinomial(y.detach(), 2, out=T.empty(2, 2))",
    "T.randn(3, dtype=T.complex64).dtype", "T.rand(2, dtype=T.complex128).shape", "(T.ones(2) + T.ones(2)).to(T.float8_e5m2) + T.ones(2)",
]  # fmt: skip
_ONCE = "computed in float64 and rounded once; PyTorch's sum of cosines in float32 ends at -1e-8"
MEANT: dict[str, str] = dict.fromkeys(
    ("T.blackman_window(5)", "T.blackman_window(6, periodic=False)", "T.signal.windows.blackman(5)", "T.signal.windows.nuttall(5)"), _ONCE
)
