"""Autocast on the CPU gives the types that PyTorch's gives: PyTorch's sample database in float32, the functions of its lists in bfloat16, too."""

from __future__ import annotations

import re
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import tritensor as tt
from tests.peer.opinfo.compare import tensors
from tests.peer.opinfo.resolve import key, resolved
from tests.peer.opinfo.walk import _ours, _seeded, _theirs
from tritensor.amp.policies import policies
from tritensor.ops.table import registry

pytestmark = pytest.mark.peer
CAST = policies()


def listed(op: Any) -> bool:
    return op.name.rpartition(".")[2] in CAST or op.name in CAST


WALKED = [op for i, op in enumerate(op_db) if listed(op) or i % 4 == 0]  # of those that nothing is done to, a fourth; all passed once
OTHERWISE = {
    "tensordot": "a sum over no dimension is a product of two columns here, which goes down, and an elementwise one there",
    "linalg.pinv": "one op here; PyTorch's is composed of products, which go down to 16 bits and lose what a pseudo-inverse is for",
    "linalg.pinv/hermitian": "the same",
    "masked.prod": "PyTorch's gives float32 or bfloat16 by whether a mask is given",
}


def types_of(f: Any, call: Any, sample: Any, kind: type) -> list[str] | None:
    """The types of what a function gives; None where it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, value, _ = call(f, sample)
    except Exception:
        return None
    return [str(t.dtype).rpartition(".")[2] for t in tensors(value, kind)]


@pytest.mark.parametrize("op", WALKED, ids=key)
def test_types(op: Any) -> None:
    mine, why = resolved(op)
    if mine is None:
        pytest.skip(why)
    torch.set_num_threads(1)
    wrong = []
    few = 3 if listed(op) else 1
    for dtype in (torch.float32, torch.bfloat16) if listed(op) else (torch.float32,):
        _seeded()
        try:
            samples = list(islice(op.sample_inputs("cpu", dtype, requires_grad=False), few))
        except Exception:  # PyTorch has no sample of this type
            continue
        for sample in samples:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                theirs = types_of(op, _theirs, sample, torch.Tensor)
            if theirs is None:
                continue
            with tt.autocast("cpu", dtype=tt.bfloat16):
                ours = types_of(mine, _ours, sample, tt.Tensor)
            if ours is None or ours == theirs:
                continue
            if types_of(op, _theirs, sample, torch.Tensor) == types_of(mine, _ours, sample, tt.Tensor):  # it is autocast that differs
                wrong.append((str(dtype), theirs, ours))
    assert key(op) in OTHERWISE or not wrong, wrong


def test_the_lists_for_gpus_are_pytorchs() -> None:
    """Every name of PyTorch's lists, which its headers hold, is in the list of the same kind here."""
    header = (Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text()
    wrong = []
    for macro, how in (("LOWER_PRECISION_FP", "lower"), ("FP32", "float32"), ("FP32_SET_OPT_DTYPE", "float32"), ("PROMOTE", "widest")):
        body = re.search(rf"#define AT_FORALL_{macro}\(_\)(.*?)\n\n", header, re.S)
        assert body is not None
        for name in set(re.findall(r"_\((\w+)", body[1])):
            public = SHOWN.get(name, name).removeprefix("linalg_")
            if not any(hasattr(place, public) for place in (tt, tt.Tensor, tt.nn.functional, tt.linalg)) or name.startswith("_"):
                continue
            if CAST.get(public, {}).get("cuda") != how and not (public in registry and registry[public].autocast == how):
                wrong.append((name, how))
    assert not wrong


SHOWN = {
    "nll_loss2d": "nll_loss",
    "native_layer_norm": "layer_norm",
    "frobenius_norm": "norm",
    "convolution": "conv2d",
    "conv_tbc": "conv1d",
} | {f"upsample_{n}": "interpolate" for n in ("nearest1d", "nearest2d", "nearest3d", "linear1d", "bilinear2d", "trilinear3d", "bicubic2d")}

MODULES = [
    "LSTM(4, 3)", "GRU(4, 3)", "RNN(4, 3)", "LSTMCell(4, 3)", "GRUCell(4, 3)", "RNNCell(4, 3)", "Linear(4, 3)", "Conv1d(2, 3, 2)", "BatchNorm1d(2)", "PReLU()",
    "GroupNorm(1, 2)", "LayerNorm(4)", "Sequential(nn.Linear(4, 4), nn.ReLU(), nn.LayerNorm(4), nn.Linear(4, 2), nn.LogSoftmax(-1))",
]  # fmt: skip


@pytest.mark.parametrize("made", MODULES)
def test_types_of_modules(made: str) -> None:
    answers = []
    for library in (torch, tt):
        module = eval(f"nn.{made}", {"nn": library.nn})
        x = library.ones(2, 4) if "Cell" in made else library.ones(5, 2, 4)
        with library.autocast("cpu", dtype=library.bfloat16):
            y = module(x)
        answers.append([str(t.dtype).rpartition(".")[2] for t in tensors(y, library.Tensor)])
    assert answers[0] == answers[1]
