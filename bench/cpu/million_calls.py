"""The calls that `python -m bench ops --peer` times, by family (million.py says what the names stand for)."""

from __future__ import annotations

_UNARY = [
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "frac", "log", "log10", "log1p", "log2", "neg",
    "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "atanh", "asinh", "isnan",
    "isfinite", "isinf", "logical_not", "logit", "deg2rad", "rad2deg", "nan_to_num", "clone", "softmax:,1", "log_softmax:,1",
]  # fmt: skip
_BINARY = [
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "atan2", "hypot", "fmod", "remainder", "floor_divide", "logaddexp", "eq", "lt", "ge",
    "logical_and", "xlogy",
]  # fmt: skip
_REDUCTIONS = [
    "sum", "mean", "var", "std", "amax", "amin", "max", "min", "prod", "any", "all", "argmax", "argmin", "norm", "logsumexp:,1", "count_nonzero",
    "nansum", "nanmean", "cumsum:,1",
]  # fmt: skip


def _calls(names: list[str], *operands: str) -> list[str]:
    return [f"T.{name.partition(':')[0]}({first}{name.partition(':')[2]})" for name in names for first in operands]


POINTWISE = [
    *_calls(_UNARY, "u"),
    *[f"T.{f}(x, y)" for f in _BINARY],
    "x + 1.5", "x * 2", "2 - x", "x ** 2", "x ** 3", "y ** 0.5", "y ** 1.7", "x + x[0]", "x * x[:, :1]", "x < 0", "T.clamp(x, -1, 1)", "T.clamp(x, min=0)", "T.where(k, x, y)",
    "T.lerp(x, y, 0.3)", "T.addcmul(x, y, u)", "T.addcdiv(x, u, y)", "T.isclose(x, y)", "T.allclose(x, x)", "T.masked_fill(x, k, 0.0)", "T.div(x, y, rounding_mode='floor')",
    "i + j", "i * 3", "i // j", "i % j", "i & j", "i << 2", "i == j", "i.float()", "x.double()", "x.half()", "h.float()", "x.to(T.bfloat16)", "x.long()", "x.bool()", "h + h", "h * h",
    "d + d", "T.exp(d)", "T.sin(d)", "T.tanh(d)", "T.erf(d)", "z * z", "z.abs()", "T.exp(z)", "x.t() + y", "x.t().contiguous()", "x.clone()",
]  # fmt: skip
_SPECIAL = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "airy_ai", "entr", "erfcx", "erfinv", "i0", "i0e", "i1", "i1e",
    "ndtr", "ndtri", "log_ndtr", "psi", "gammaln", "sinc", "expit", "polygamma",
]  # fmt: skip
SPECIAL = [
    *[f"T.special.{f}({'1, y' if f == 'polygamma' else 'y' if f in ('psi', 'gammaln') else 'u'})" for f in _SPECIAL],
    "T.special.ndtr(x)", "T.special.log_ndtr(x)", "T.special.erfcx(x)", "T.special.xlog1py(x, y)", "T.special.zeta(y + 1, u)", "T.special.gammainc(y, u)",
    "T.special.gammaincc(y, u)", "T.special.gammainc(c.abs(), c.abs())", "T.special.hermite_polynomial_h(x, n[0] % 5)", "T.special.legendre_polynomial_p(x, n[0] % 5)",
    "T.special.chebyshev_polynomial_t(x, n[0] % 5)", "T.special.laguerre_polynomial_l(x, n[0] % 5)", "T.mvlgamma(y + 2, 2)", "T.logaddexp2(x, y)",
    "T.erf(x)", "T.erfc(x)", "T.erfc(d)", "T.erfinv(d * 0.1)", "F.gelu(d)", "T.cos(d)", "T.tan(d)", "T.log(d.abs())", "T.logit(d.abs() * 0.1)", "T.hypot(d, d)", "T.sigmoid(d)",
]  # fmt: skip
FLOATS = [
    "T.nextafter(x, y)", "T.copysign(x, y)", "T.signbit(x)", "T.frexp(x)", "T.ldexp(x, n[0] % 8)", "T.fmax(x, y)", "T.fmin(x, y)", "T.gcd(i, j)", "T.lcm(i, j)", "T.sgn(x)", "T.sgn(z)",
    "T.heaviside(x, y)", "T.float_power(y, 1.5)", "T.isposinf(x)", "T.isneginf(x)", "T.isreal(x)", "T.positive(x)", "T.rsub(x, y)", "T.round(x, decimals=2)", "T.angle(x)",
    "T.fmod(x, 0.7)", "T.remainder(x, 0.7)", "T.floor_divide(x, 0.7)", "T.fmod(i, j)", "T.div(x, y, rounding_mode='trunc')", "T.fmod(d, d + 3)", "T.remainder(d, d + 3)", "T.lerp(x, y, u)",
    "T.logical_xor(k, k)", "T.logical_or(x, y)", "T.bitwise_not(i)", "T.clamp(x, y, y + 1)", "T.nan_to_num(d)", "T.pow(2.0, x)", "T.pow(d.abs(), d)", "T.float_power(y, x)",
    "h - h", "h / h", "T.exp(h)", "T.relu(h)", "T.sigmoid(h)", "h * 2", "h.float() * 2",
]  # fmt: skip
NETWORKS = [
    "F.gelu(x)", "F.gelu(x, approximate='tanh')", "F.silu(x)", "F.elu(x)", "F.leaky_relu(x)", "F.softplus(x)", "F.layer_norm(x, (1000,))", "F.rms_norm(x, (1000,))", "F.batch_norm(q, None, None, training=True)", "F.instance_norm(q)", "F.softmax(x, -1)", "F.log_softmax(x, -1)", "F.relu(x)",
    "F.mse_loss(x, y)", "F.l1_loss(x, y)", "F.cross_entropy(x, n[0])", "F.dropout(x, 0.5)", "F.max_pool2d(q, 2)", "F.avg_pool2d(q, 2)", "F.embedding(n[0], x)",
    "F.conv2d(q, q[:, :, :3, :3])", "F.linear(x, c.repeat(4, 4)[:500, :1000])",
]  # fmt: skip
REDUCTIONS = [
    *_calls(_REDUCTIONS, "x"), *[f"T.{f}(x, dim={d})" for f in ("sum", "mean", "amax", "max", "var", "argmax", "prod", "cumsum") for d in (0, 1)],
    "T.norm(x, 1)", "T.norm(x, 3)", "T.norm(x, dim=1)", "T.sum(h)", "T.sum(i)", "T.sum(k)", "T.sum(d)", "T.var_mean(x, 1)", "T.sum(q, dim=(0, 2, 3))",
]  # fmt: skip
SHAPES = [
    "T.cat([x, y])", "T.cat([x, y], 1)", "T.stack([x, y], 2)", "T.flip(x, (0,))", "T.flip(x, (1,))", "T.roll(x, 3, 1)", "T.rot90(x)", "x.repeat(2, 1)", "T.tile(x, (1, 2))",
    "T.repeat_interleave(x, 2, 1)", "T.tril(x)", "T.triu(x)", "x[::2, 1:] + 0", "x[:, ::2].contiguous()", "q.permute(0, 2, 3, 1).contiguous()", "T.diag(x)", "T.diag_embed(x[:100])",
    "x.reshape(-1, 10).t().contiguous()", "T.outer(v[:1000], w[:1000])",
]  # fmt: skip
INDEXING = [
    "x[n[0]]", "x[:, n[0]]", "x[k]", "x[n[0], n[1]]", "v[r]", "T.index_select(x, 0, n[0])", "T.index_select(x, 1, n[0])", "T.gather(x, 1, n)", "T.gather(x, 0, n)", "T.take_along_dim(x, n, 1)",
    "T.scatter(x, 1, n, y)", "T.scatter(x, 0, n, y)", "T.scatter_add(x, 1, n, y)", "T.scatter_add(x, 0, n, y)", "T.nonzero(k)", "x.clone().index_put_((n[0], n[1]), v[:1000])",
    "v.clone().index_put_((r,), w)", "x.clone().fill_(0)", "x.clone().masked_fill_(k, 0)", "x.clone().copy_(y)",
]  # fmt: skip
CREATION = [
    "T.zeros(1000, 1000)", "T.ones(1000, 1000)", "T.full((1000, 1000), 2.5)", "T.arange(1000000)", "T.arange(0, 1, 1e-6)", "T.linspace(0, 1, 1000000)", "T.eye(1000)", "T.rand(1000, 1000)",
    "T.randn(1000, 1000)", "T.randint(0, 10, (1000, 1000))", "T.randperm(1000000)", "T.bernoulli(u)", "T.zeros_like(x)", "T.rand_like(x)",
]  # fmt: skip
PRODUCTS = [
    "T.mm(c, c)", "x @ x", "T.mv(x, x[0])", "T.dot(v, w)", "T.bmm(b, b)", "T.einsum('bij,bjk->bik', b, b)", "T.einsum('ij,ij->i', x, y)", "T.tensordot(c, c, 1)", "h[:256, :256] @ h[:256, :256]",
    "i[:256, :256] @ i[:256, :256]", "T.addmm(c, c, c)", "T.baddbmm(b, b, b)", "d[:256, :256] @ d[:256, :256]",
]  # fmt: skip
SPECTRAL = ["T.fft.fft(x)", "T.fft.rfft(x)", "T.fft.irfft(z)", "T.fft.fft2(x)", "T.fft.ifft(z, dim=0)", "T.fft.fft(v)", "T.fft.fftshift(x)"]
CALLS = list(dict.fromkeys(POINTWISE + FLOATS + SPECIAL + NETWORKS + REDUCTIONS + SHAPES + INDEXING + CREATION + PRODUCTS + SPECTRAL))
