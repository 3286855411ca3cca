"""Activations and dropout: of nn.functional, of the namespace, in place."""

from __future__ import annotations

_SIMPLE = (
    "relu6",
    "selu",
    "celu",
    "hardtanh",
    "hardsigmoid",
    "hardswish",
    "mish",
    "silu",
    "softsign",
    "tanhshrink",
    "logsigmoid",
    "hardshrink",
    "softshrink",
)

EXPRESSIONS = [
    *[f"F.{name}({given})" for name in _SIMPLE for given in ("x", "s")],
    *[f"F.{name}(x * 1, inplace=True)" for name in ("relu6", "selu", "celu", "hardtanh", "hardsigmoid", "hardswish", "mish", "silu", "relu")],
    *[f"F.{call}" for call in (
        "relu6(i)", "hardtanh(i, -1, 2)", "hardtanh(x, 0.5, 1.2)", "hardtanh(x, 2, 1)", "hardtanh_(x * 1)", "hardtanh_(x * 1, 0.1, 0.4)", "softsign(i)", "tanhshrink(i)", "softsign(z)", "mish(i)",
        "celu(x, 0.5)", "celu(x, 0)", "celu(x, alpha=-2.0)", "hardshrink(x, 1.0)", "softshrink(x, 1.0)", "softshrink(x, -1.0)", "threshold(x, 0.5, -3.0)", "threshold(x * 1, 0.5, -3.0, True)", "threshold(i, 1, 7)",
        "threshold(x)", "rrelu(x)", "rrelu(x, 0.2, 0.4)", "rrelu(x, 0.4, 0.2)", "rrelu(x * 1, inplace=True)", "rrelu(y, training=True)", "prelu(x, v)", "prelu(x, v[:1])", "prelu(x, v[:2])",
        "prelu(b, v)", "prelu(x, v.float())", "prelu(x, m)", "prelu(v, v[:1])", "prelu(p, v[:2])", "prelu(o, v[:1])", "glu(x, 0)", "glu(x)", "glu(x.t())", "glu(b, 0)", "glu(o)", "glu(p[..., :4])",
        "softmin(x, 1)", "softmin(x, dim=0, dtype=T.float32)", "gumbel_softmax(x * 0 + 1, hard=True).sum(-1)", "gumbel_softmax(x, dim=0).sum(0)", "gumbel_softmax(i)",
        "alpha_dropout(x)", "alpha_dropout(x, 0.0, True)", "alpha_dropout(x, 1.0, True)", "alpha_dropout(x, 2.0, True)", "feature_alpha_dropout(x)", "feature_alpha_dropout(x, 1.0, True)", "feature_alpha_dropout(v, 0.5, True)",
        "dropout1d(x, 0.0)", "dropout1d(x, 1.0)", "dropout1d(v)", "dropout2d(p, 0.0)", "dropout2d(p, 1.0)", "dropout2d(p, 0.5, False)", "dropout3d(p, 1.0)", "dropout3d(p, 1.5)", "dropout1d(b * 1, 1.0, True, True)",
        "dropout(x * 1, 1.0, inplace=True)",
    )],
    *[f"T.{call}" for call in (
        "selu(x)", "selu_(x * 1)", "celu(x)", "celu(x, 2.0)", "celu_(x * 1)", "celu_(x * 1, 0.5)", "prelu(x, v)", "rrelu(x)", "rrelu_(x * 1, 0.1, 0.3)", "threshold(x, 0.5, 1.0)", "threshold_(x * 1, 0.5, 1.0)", "hardshrink(x)",
        "hardshrink(x, 1.5)", "alpha_dropout(x, 0.5, False)", "alpha_dropout(x, 1.0, True)", "alpha_dropout_(x * 1, 1.0, True)", "alpha_dropout_(x * 1, 0.5, False)", "feature_dropout(x, 1.0, True)",
        "feature_dropout(v, 0.5, True)", "feature_dropout_(x * 1, 1.0, True)", "feature_dropout_(x * 1, 0.0, True)", "feature_alpha_dropout(x, 1.0, True)", "feature_alpha_dropout_(x * 1, 1.0, True)",
        "feature_alpha_dropout_(x * 1, 0.5, False)", "selu(i)", "celu(k)", "threshold(x, 0.5)", "hardshrink(i)",
    )],
    "x.prelu(v)", "x.hardshrink()", "x.hardshrink(0.9)",
]  # fmt: skip
