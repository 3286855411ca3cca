"""Complex numbers: parts, views, conjugates, and arithmetic with their gradients."""

from __future__ import annotations

_UNARY = (
    "abs", "angle", "conj", "conj_physical", "sgn", "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh",
    "acosh", "atanh", "square", "reciprocal", "neg", "rsqrt", "log2", "log10", "log1p", "expm1", "exp2", "sum", "mean", "prod", "resolve_conj", "resolve_neg",
)  # fmt: skip
EXPRESSIONS = [
    *[f"T.{f}(z)" for f in _UNARY],
    *[f"z.{f}()" for f in ("abs", "angle", "conj", "sgn", "is_conj", "is_neg")],
    "z.real", "z.imag", "T.real(z)", "T.imag(z)", "T.real(x)", "T.imag(x)", "T.view_as_real(z)", "T.view_as_complex(T.view_as_real(z))", "T.view_as_complex(x)",
    "T.view_as_complex(x.t().contiguous())", "T.view_as_complex(x.t())", "T.view_as_real(x)", "T.complex(x, y)", "T.complex(x, f[0])", "T.complex(x, v)", "T.complex(i, i)",
    "T.polar(y, x)", "T.polar(y, f)", "T.angle(x)", "T.angle(i)", "T.angle(s)", "T.sgn(x)", "T.sgn(i)", "T.sign(z)", "T.is_conj(z)", "T.is_neg(z)",
    "z + z", "z - x", "x * z", "z / y", "x / z", "z ** 2", "z ** 0.5", "y ** z", "z ** z", "2 ** z", "(-2.0) ** z", "z ** 2j", "z * 2j", "1j - z", "z == z", "z != x",
    "z @ z.t()", "z @ m", "z @ m.to(T.complex128)", "z.H", "z.mH", "T.adjoint(z)", "z.T", "z.t()", "z[0] * x[0]", "z.reshape(3, 2)", "z.cumsum(1)", "T.dot(z[0], z[1])", "T.vdot(z[0], z[1])",
    "T.vdot(v, v)", "T.where(k, z, x)", "T.cat([z, x])", "T.stack([z, z])", "z.to(T.complex64)", "x.to(T.complex128)", "x.to(T.complex64)", "z.abs().pow(2).sum()", "(z * z.conj()).real.sum()",
    "T.view_as_real(z * z).sum()", "z.detach().clone().real.mul_(2)", "z.clone().mul_(z)", "z.clone().add_(x)", "x.clone().add_(z)", "z.clone().sgn_()", "z.clone().conj_physical_()",
    "z < z", "T.maximum(z, z)", "z.sum(0)", "z.mean(1)", "z.prod(1)", "z.expand(2, 2, 3)", "z.flip(0)", "T.isfinite(z)", "T.isnan(z)", "z.requires_grad", "z.is_complex()", "z.dtype",
    "z.sum().backward()", "z.abs().sum().backward()", "T.outer(z[0], z[1])", "T.tensordot(z, z, 2)", "z.diagonal()", "z.tolist()", "z[0, 0].item()",
]  # fmt: skip
ON_CPU = True
# What is otherwise than in PyTorch on purpose: why
MEANT = {"z @ m": "the types of a product's operands promote, as everywhere else"}
