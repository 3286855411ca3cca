"""torch's counterparts of ops on elements: arithmetic, comparisons, functions, activations."""

from __future__ import annotations

from typing import Any

from bench.gpu.peers.forms import Peer, dtype_of, functional, keyword, named, renamed, special


def _threshold(t: Any, x: Any, *, threshold: float = 0.0, value: float = 0.0) -> Any:
    return t.nn.functional.threshold(x, threshold, value)


def _copy(t: Any, x: Any, *, memory_format: Any = "contiguous_format") -> Any:
    return x.clone(memory_format=getattr(t, str(memory_format).rpartition(".")[2]))


PEERS: dict[str, Peer] = {
    **named(
        "sigmoid", "add", "sub", "mul", "div", "neg", "abs", "square", "sqrt", "rsqrt", "reciprocal", "eq", "ne", "lt", "le", "gt", "ge",
        "logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "bitwise_and", "bitwise_or",
        "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "bitwise_not", "pow", "remainder", "fmod", "floor_divide", "floor",
        "ceil", "trunc", "round", "sign", "maximum", "minimum", "where", "clamp", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "atan2",
        "copysign", "digamma", "erfinv", "fmax", "fmin", "gcd", "hypot", "i0", "igamma", "igammac", "lcm", "lerp", "lgamma", "logaddexp",
        "logaddexp2", "logit", "nextafter", "signbit", "sinc", "xlogy",
    ),
    **special(
        "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
        "chebyshev_polynomial_v", "chebyshev_polynomial_w", "entr", "erfcx", "hermite_polynomial_h", "hermite_polynomial_he", "i0e", "i1",
        "i1e", "laguerre_polynomial_l", "legendre_polynomial_p", "log_ndtr", "modified_bessel_k0", "modified_bessel_k1", "ndtr", "ndtri",
        "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
        "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "spherical_bessel_j0", "xlog1py", "zeta",
    ),
    **functional("relu", "leaky_relu", "silu", "softplus", "elu", "gelu", "celu", "selu", "mish", "hardsigmoid", "hardswish", "glu"),
    **keyword("nan_to_num"),
    "hardtanh": renamed(lambda t: t.nn.functional.hardtanh, low="min_val", high="max_val"),
    "hardshrink": renamed(lambda t: t.nn.functional.hardshrink, limit="lambd"),
    "softshrink": renamed(lambda t: t.nn.functional.softshrink, limit="lambd"),
    "log_sigmoid": lambda t, x: t.nn.functional.logsigmoid(x),
    "threshold": _threshold,
    "prelu": lambda t, x, weight: t.ops.aten._prelu_kernel(x, weight),
    "trunc_divide": lambda t, a, b: t.div(a, b, rounding_mode="trunc"),
    "trigamma": lambda t, x: t.polygamma(1, x),
    "real_angle": lambda t, x: t.angle(x),
    "standard_gamma_grad": lambda t, a, x: t._standard_gamma_grad(a, x),
    "dirichlet_grad": lambda t, x, a, total: t._dirichlet_grad(x, a, total),
    "copy": _copy,
    "cast": lambda t, x, *, dtype: x.to(dtype_of(t, dtype)),
}  # fmt: skip
