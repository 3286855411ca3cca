"""Attributes of an op that are left out: they are what they are in the public function of its name, or what is written here."""

from __future__ import annotations

import inspect
from typing import Any

import tritensor as tt
from tritensor.ops.table import Op, registry
from tritensor.tensor.public_api.publish import namespaces, public

# Of ops without a public function of their name, and of attributes that such a function does not have or computes.
OWN: dict[str, dict[str, Any]] = {
    "copy": {"memory_format": tt.contiguous_format},
    **{name: {"axes": 1, "eps": 1e-5} for name in ("layer_norm", "add_layer_norm", "add_rms_norm")},
    "rms_norm": {"axes": 1, "eps": 1e-5},
    "add_product": {"alpha": 1.0, "beta": 1.0},
    "fft_c2c": {"keep_order": False},
    "batch_norm": {"eps": 1e-5},
    "batch_norm_by": {"eps": 1e-5},
    "batch_norm_by_activation": {"eps": 1e-5, "activation": "relu"},
    "embedding": {"padding_idx": None},
    **{name: {"padding_idx": None, "length": None} for name in ("embedding_bag", "bag_tops")},
    **{name: {"divisor_override": None} for name in ("avg_pool2d_spread", "avg_pool3d_spread")},
    "max_dim": {"keepdim": False},
    "min_dim": {"keepdim": False},
    "cumsum": {"reverse": False},
    "linear_scan": {"reverse": False},
    "cdist": {"fast": False},
    "nan_to_num": {"nan": 0.0, "posinf": 0.0, "neginf": 0.0},
    "uniform_bins": {"low": 0.0, "high": 1.0, "bins": 1.0},
    "bin_numbers": {"uniform": False},
    "sum_of_squares": {"keepdim": False},
    "pivots_to_order": {"inverse": False},
    "var": {"correction": 1},
    **{name: {"called": ""} for name in ("gather", "scatter", "scatter_add", "scatter_reduce")},  # what messages call the function
    **{name: {"reverse": False} for name in ("lstm_sequence", "gru_sequence")},
    "rnn_sequence": {"reverse": False, "nonlinearity": "tanh"},
    "attention": {"causal": False},
    "flash_attention": {"causal": False, "p": 0.0, "seed": 0, "offset": 0},
    "hardtanh": {"low": -1.0, "high": 1.0},
    **{name: {"limit": 0.5} for name in ("hardshrink", "softshrink")},
    "threshold": {"threshold": 0.0, "value": 0.0},
    **{
        name: {"reduction": "mean"} for name in ("bce_with_logits", "kl_div", "kl_div_of_logs", "poisson_nll_of_log")
    },  # a number at the front door
    "poisson_nll": {"reduction": "mean", "eps": 1e-8},
    "linear_cross_entropy": {"reduction": "mean", "ignore_index": -100, "label_smoothing": 0.0, "chunk": 0},
    **{f"conv{axes}d_relu": {"groups": 1} for axes in (1, 2, 3)},
    "linear_activation": {"keep": False},
    "linear_activation_by_result": {"activation": "relu"},
    "index_get": {"called": "getitem"},
    "index_put": {"called": "setitem"},
    "index_assign": {"called": "setitem"},
}


STEPS = {
    "maximize": False,
    "decay": 0,
    "weight_decay": 0.0,
    "nesterov": False,
    "first": False,
}  # of the steps of optimizers and their numbers


def expected(op: Op, name: str) -> Any:
    if op.module.endswith("optimizers.steps"):
        return STEPS[name]
    if name in OWN.get(op.name, {}):
        return OWN[op.name][name]
    f = public.get(op.name) or namespaces["linalg"].get(op.name) or getattr(tt.nn.functional, op.name)
    return inspect.signature(f).parameters[name].default


def pair(value: Any) -> Any:
    """Windows are given as one number to a public function, as a pair to its op."""
    return (value, value) if type(value) is int else value


def test_defaults() -> None:
    given = {(op.name, k): v for op in registry.values() for k, v in op.attrs.items() if v is not inspect.Parameter.empty}
    assert len(given) > 40
    wrong = {
        (n, k): v
        for (n, k), v in given.items()
        if pair(v) != pair(expected(registry[n], k)) or isinstance(v, bool) != isinstance(expected(registry[n], k), bool)
    }
    assert not wrong
