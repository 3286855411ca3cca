"""repr of what is built by hand, character by character as torch's: containers, layers that the module database has not, optimizers, buffers.

The database's own layers are compared where it is walked (test_modules_peer.py), distributions and transforms in test_distributions_peer.py.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import tritensor as tt

pytestmark = pytest.mark.peer
EXPRESSIONS = """
nn.Sequential(nn.Linear(1, 2), nn.ReLU(True), nn.Sequential())
nn.ModuleList([nn.Linear(1, 2)] * 3)
nn.ModuleDict({"a": nn.ReLU(), "b": nn.ModuleList([nn.ReLU(), nn.Tanh()])})
nn.ParameterList([nn.Parameter(T.ones(2)), nn.Parameter(T.ones(2, 2))])
nn.ParameterDict({"a": nn.Parameter(T.ones(2))})
nn.Upsample(size=(2, 3), mode="bilinear", align_corners=True)
nn.UpsamplingBilinear2d(size=3)
nn.Unflatten(1, (2, 3))
nn.LazyConv2d(3, 3)
nn.LazyBatchNorm2d()
nn.EmbeddingBag(3, 4, mode="sum", padding_idx=1)
nn.LSTM(1, 2, proj_size=1, dropout=0.1, num_layers=2)
nn.RNNCell(1, 2, nonlinearity="relu")
nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 5])
nn.CrossEntropyLoss(weight=T.ones(2), label_smoothing=0.1)
nn.FractionalMaxPool3d(2, output_ratio=0.5)
nn.Conv2d(2, 4, 3, padding="same", padding_mode="reflect", bias=False, groups=2, dilation=2)
nn.SyncBatchNorm(3)
nn.DataParallel(nn.Linear(1, 2))
nn.utils.parametrizations.weight_norm(nn.Linear(1, 2))
nn.utils.parametrizations.orthogonal(nn.Linear(2, 2))
nn.Parameter(T.ones(2))
nn.Buffer(T.ones(2))
nn.UninitializedParameter()
nn.utils.rnn.pack_sequence([T.ones(2), T.ones(1)])
T.optim.swa_utils.AveragedModel(nn.Linear(1, 2))
""".strip().splitlines()
OPTIMIZERS = [
    "SGD",
    "Adam",
    "AdamW",
    "NAdam",
    "RAdam",
    "Adamax",
    "Adagrad",
    "Adadelta",
    "RMSprop",
    "Rprop",
    "ASGD",
    "Adafactor",
    "LBFGS",
    "SparseAdam",
    "Muon",
]


def shown(library: Any, expression: str) -> str:
    library.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return repr(eval(expression, {"T": library, "nn": library.nn})).replace("torch.", "tritensor.")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_prints_as_torch(expression: str) -> None:
    assert shown(tt, expression) == shown(torch, expression)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_prints_as_torchs(name: str) -> None:
    one = "[T.nn.Parameter(T.ones(2, 2))]"
    groups = "[('w', T.nn.Parameter(T.ones(2, 2)))], lr=0.5" if name != "LBFGS" else one
    assert shown(tt, f"T.optim.{name}({groups})") == shown(torch, f"T.optim.{name}({groups})")
    if name != "LBFGS":
        two = f"[{{'params': {one}, 'lr': 0.25}}, {{'params': {one}}}]"
        assert shown(tt, f"T.optim.{name}({two})") == shown(torch, f"T.optim.{name}({two})")
