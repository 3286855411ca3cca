"""Every layer of tt.nn through the exporter, with a dynamic batch, or the reason why it cannot be."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as tt
from tests.onnx.agreement import agree
from tritensor import nn
from tritensor.onnx.errors import UnsupportedOperatorError
from tritensor.torch_compat import recorded_names

Case = tuple[Callable[[], Any], tuple[tuple[int, ...] | str, ...]]
ROW, IMAGE, VOLUME, LINE = (3, 6), (2, 4, 6, 8), (2, 3, 4, 6, 4), (2, 4, 8)

# name: [(makes the layer, what its inputs are: shapes of normal numbers, or a word of MADE)]
CASES: dict[str, list[Case]] = {
    **{f"AdaptiveAvgPool{d}d": [(lambda d=d: getattr(nn, f"AdaptiveAvgPool{d}d")(1), (s,)), (lambda d=d: getattr(nn, f"AdaptiveAvgPool{d}d")(3), (s,)),
       (lambda d=d: getattr(nn, f"AdaptiveAvgPool{d}d")(2), (s,))] for d, s in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"AdaptiveMaxPool{d}d": [(lambda d=d: getattr(nn, f"AdaptiveMaxPool{d}d")(1), (s,)), (lambda d=d: getattr(nn, f"AdaptiveMaxPool{d}d")(2, True), (s,)),
       (lambda d=d: getattr(nn, f"AdaptiveMaxPool{d}d")(3, True), (s,))] for d, s in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"AvgPool{d}d": [(lambda d=d: getattr(nn, f"AvgPool{d}d")(2), (s,)), (lambda d=d: getattr(nn, f"AvgPool{d}d")(3, 2, 1, ceil_mode=True), (s,)),
       (lambda d=d: getattr(nn, f"AvgPool{d}d")(3, 2, 1, count_include_pad=False, ceil_mode=True), (s,))] for d, s in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"MaxPool{d}d": [(lambda d=d: getattr(nn, f"MaxPool{d}d")(2), (s,)), (lambda d=d: getattr(nn, f"MaxPool{d}d")(3, 2, 1, ceil_mode=True), (s,)),
       (lambda d=d: getattr(nn, f"MaxPool{d}d")(2, 1, dilation=2, return_indices=True), (s,))] for d, s in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"LPPool{d}d": [(lambda d=d: getattr(nn, f"LPPool{d}d")(2, 2), (s,)), (lambda d=d: getattr(nn, f"LPPool{d}d")(3, 3, 2), (s,))]
       for d, s in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"Conv{d}d": [
        (lambda d=d: getattr(nn, f"Conv{d}d")(4, 6, 3, 2, 1), (s,)), (lambda d=d: getattr(nn, f"Conv{d}d")(4, 6, 2, dilation=2, groups=2, bias=False), (s,)),
        (lambda d=d: getattr(nn, f"Conv{d}d")(4, 6, 2, padding="same"), (s,)),
        *[(lambda d=d, m=m: getattr(nn, f"Conv{d}d")(4, 2, 3, padding=1, padding_mode=m), (s,)) for m in ("reflect", "replicate", "circular")],
    ] for d, s in ((1, LINE), (2, IMAGE), (3, (2, 4, 4, 6, 4)))},
    **{f"ConvTranspose{d}d": [
        (lambda d=d: getattr(nn, f"ConvTranspose{d}d")(4, 6, 3, 2, 1, output_padding=1), (s,)),
        (lambda d=d: getattr(nn, f"ConvTranspose{d}d")(4, 6, 2, dilation=2, groups=2, bias=False), (s,)),
    ] for d, s in ((1, LINE), (2, IMAGE), (3, (2, 4, 4, 6, 4)))},
    **{f"{kind}Pad{d}d": [(lambda k=kind, d=d, a=a: getattr(nn, f"{k}Pad{d}d")(1, *a), (s,))] for d, s in ((1, LINE), (2, IMAGE), (3, VOLUME))
       for kind, a in (("Circular", ()), ("Constant", (0.5,)), ("Reflection", ()), ("Replication", ()), ("Zero", ()))},
    **{f"BatchNorm{d}d": [(lambda d=d, s=s: worn(getattr(nn, f"BatchNorm{d}d")(s[1])), (s,)), (lambda d=d, s=s: getattr(nn, f"BatchNorm{d}d")(s[1], affine=False), (s,)),
       (lambda d=d, s=s: getattr(nn, f"BatchNorm{d}d")(s[1], track_running_stats=False), (s,))] for d, s in ((1, ROW), (2, (2, 6, 3, 4)), (3, (2, 6, 2, 3, 2)))},
    **{f"InstanceNorm{d}d": [(lambda d=d, s=s: getattr(nn, f"InstanceNorm{d}d")(s[1]), (s,)),
       (lambda d=d, s=s: worn(getattr(nn, f"InstanceNorm{d}d")(s[1], affine=True, track_running_stats=True)), (s,))]
       for d, s in ((1, LINE), (2, IMAGE), (3, (2, 4, 2, 3, 2)))},
    **{f"Dropout{d}d": [(lambda d=d: getattr(nn, f"Dropout{d}d")(), (s,))] for d, s in ((2, IMAGE), (3, VOLUME))},
    "Bilinear": [(lambda: nn.Bilinear(3, 4, 5), ((2, 3), (2, 4)))],
    "ChannelShuffle": [(lambda: nn.ChannelShuffle(2), (IMAGE,))],
    "CosineSimilarity": [(nn.CosineSimilarity, (ROW, ROW))],
    "CrossMapLRN2d": [(lambda: nn.CrossMapLRN2d(3), (IMAGE,))],
    "Embedding": [(lambda: nn.Embedding(5, 3, padding_idx=1), ("tokens",))],
    "EmbeddingBag": [(lambda: nn.EmbeddingBag(5, 3, mode="sum"), ("tokens",)), (lambda: nn.EmbeddingBag(5, 3), ("tokens",)),
                     (lambda: nn.EmbeddingBag(5, 3, mode="max"), ("tokens",))],
    "Fold": [(lambda: nn.Fold((5, 6), 2, padding=1, stride=2), ((2, 12, 12),))],
    "Unfold": [(lambda: nn.Unfold((2, 3), 1, 1, 2), (IMAGE,))],
    "GLU": [(nn.GLU, (ROW,))],
    "GroupNorm": [(lambda: nn.GroupNorm(2, 4), (IMAGE,)), (lambda: nn.GroupNorm(4, 4, affine=False), (LINE,))],
    "LayerNorm": [(lambda: nn.LayerNorm(6), (ROW,)), (lambda: nn.LayerNorm((6, 8), bias=False), (IMAGE,)), (lambda: nn.LayerNorm(6, elementwise_affine=False), (ROW,))],
    "RMSNorm": [(lambda: nn.RMSNorm(6), (ROW,)), (lambda: nn.RMSNorm((6, 8), elementwise_affine=False), (IMAGE,))],
    "LocalResponseNorm": [(lambda: nn.LocalResponseNorm(2), (IMAGE,)), (lambda: nn.LocalResponseNorm(3), (LINE,))],
    "Lambda": [(lambda: nn.Lambda(lambda x: x * 2 + 1), (ROW,))],
    "Linear": [(lambda: nn.Linear(6, 4), (ROW,)), (lambda: nn.Linear(8, 4, bias=False), (IMAGE,))],
    "LogSoftmax": [(lambda: nn.LogSoftmax(1), (ROW,))], "Softmax": [(lambda: nn.Softmax(-1), (ROW,))], "Softmin": [(lambda: nn.Softmin(1), (ROW,))],
    "Softmax2d": [(nn.Softmax2d, (IMAGE,))],
    "MaxUnpool1d": [(lambda: pooled(1), (LINE,))], "MaxUnpool2d": [(lambda: pooled(2), (IMAGE,))], "MaxUnpool3d": [(lambda: pooled(3), (VOLUME,))],
    "PairwiseDistance": [(nn.PairwiseDistance, (ROW, ROW))],
    "PixelShuffle": [(lambda: nn.PixelShuffle(2), (IMAGE,))], "PixelUnshuffle": [(lambda: nn.PixelUnshuffle(2), (IMAGE,))],
    "Threshold": [(lambda: nn.Threshold(0.1, 20.0), (ROW,))],
    "Unflatten": [(lambda: nn.Unflatten(1, (2, 3)), (ROW,))],
    "Upsample": [
        *[(lambda m=m: nn.Upsample(scale_factor=2, mode=m), (IMAGE,)) for m in ("nearest", "nearest-exact", "bilinear", "bicubic")],
        *[(lambda m=m, a=a: nn.Upsample(size=(9, 5), mode=m, align_corners=a), (IMAGE,)) for m in ("bilinear", "bicubic") for a in (True, False)],
        (lambda: nn.Upsample(scale_factor=1.7, mode="linear"), (LINE,)), (lambda: nn.Upsample(size=(3, 7, 5), mode="trilinear"), (VOLUME,)),
        (lambda: nn.Upsample(size=(4, 11), mode="nearest"), (IMAGE,)), (lambda: nn.Upsample(size=(4, 11), mode="nearest-exact"), (IMAGE,)),
    ],
    "UpsamplingBilinear2d": [(lambda: nn.UpsamplingBilinear2d(scale_factor=2), (IMAGE,))],
    "UpsamplingNearest2d": [(lambda: nn.UpsamplingNearest2d(scale_factor=2), (IMAGE,))],
    "RNNCell": [(lambda: nn.RNNCell(6, 5), (ROW,)), (lambda: nn.RNNCell(6, 5, nonlinearity="relu"), (ROW, (3, 5)))],
    "GRUCell": [(lambda: nn.GRUCell(6, 5), (ROW, (3, 5)))],
    "LSTMCell": [(lambda: nn.LSTMCell(6, 5), (ROW,))],
    "Sequential": [(lambda: nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2)), (ROW,))],
    "DataParallel": [(lambda: nn.DataParallel(nn.Linear(6, 4)), (ROW,))],
    # losses
    **{n: [(lambda n=n, r=r: getattr(nn, n)(reduction=r), (ROW, ROW)) for r in ("mean", "sum", "none")] for n in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")},
    **{n: [(lambda n=n: getattr(nn, n)(), (ROW, "signs"))] for n in ("SoftMarginLoss", "HingeEmbeddingLoss")},
    "BCELoss": [(nn.BCELoss, ("shares", "shares"))], "BCEWithLogitsLoss": [(lambda: nn.BCEWithLogitsLoss(pos_weight=tt.ones(6) * 2), (ROW, "shares"))],
    "KLDivLoss": [(lambda: nn.KLDivLoss(reduction="batchmean"), (ROW, "shares")), (lambda: nn.KLDivLoss(log_target=True, reduction="sum"), (ROW, ROW))],
    "PoissonNLLLoss": [(nn.PoissonNLLLoss, (ROW, "shares")), (lambda: nn.PoissonNLLLoss(log_input=False, full=True), ("shares", "shares"))],
    "GaussianNLLLoss": [(nn.GaussianNLLLoss, (ROW, ROW, "shares"))],
    "CrossEntropyLoss": [(nn.CrossEntropyLoss, (ROW, "classes")), (lambda: nn.CrossEntropyLoss(tt.arange(1.0, 7.0), label_smoothing=0.1), (ROW, "classes")),
                         (lambda: nn.CrossEntropyLoss(reduction="none", ignore_index=1), (ROW, "classes")), (nn.CrossEntropyLoss, (ROW, "shares"))],
    "NLLLoss": [(nn.NLLLoss, (ROW, "classes")), (lambda: nn.NLLLoss(tt.arange(1.0, 7.0), reduction="sum"), (ROW, "classes"))],
    "NLLLoss2d": [(nn.NLLLoss, (IMAGE, "pixels"))],
    "CosineEmbeddingLoss": [(nn.CosineEmbeddingLoss, (ROW, ROW, "sign"))],
    "MarginRankingLoss": [(lambda: nn.MarginRankingLoss(0.2), ((3,), (3,), "sign"))],
    "MultiLabelSoftMarginLoss": [(nn.MultiLabelSoftMarginLoss, (ROW, "shares"))],
    "MultiMarginLoss": [(nn.MultiMarginLoss, (ROW, "classes"))],
    "MultiLabelMarginLoss": [(nn.MultiLabelMarginLoss, (ROW, "labels"))],
    "TripletMarginLoss": [(nn.TripletMarginLoss, (ROW, ROW, ROW)), (lambda: nn.TripletMarginLoss(swap=True), (ROW, ROW, ROW))],
    "TripletMarginWithDistanceLoss": [(nn.TripletMarginWithDistanceLoss, (ROW, ROW, ROW))],
    "LinearCrossEntropyLoss": [(lambda: nn.LinearCrossEntropyLoss(6, 5), (ROW, "few classes"))],
    "AdaptiveLogSoftmaxWithLoss": [(lambda: LogProbabilities(nn.AdaptiveLogSoftmaxWithLoss(6, 8, [2, 5])), (ROW,))],
}  # fmt: skip

ELSEWHERE = "tests/onnx/test_models.py holds it to sequences of other lengths"
WHY_NOT = {
    **dict.fromkeys(("GRU", "LSTM", "RNN", "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
                     "TransformerEncoderLayer"), ELSEWHERE),
    "CTCLoss": "ctc_loss has no translation",
    **dict.fromkeys(("FractionalMaxPool2d", "FractionalMaxPool3d"), "where the windows lie is drawn anew in every call"),
    **dict.fromkeys(("Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Container", "RNNBase", "RNNCellBase"), "it computes nothing itself"),
    "SyncBatchNorm": "BatchNorm in eval mode",
}  # fmt: skip

MADE: dict[str, Callable[[], tt.Tensor]] = {
    "tokens": lambda: tt.randint(0, 5, (3, 4)), "classes": lambda: tt.tensor([1, 5, 0]), "few classes": lambda: tt.tensor([1, 4, 0]),
    "pixels": lambda: tt.randint(0, 4, (2, 6, 8)), "shares": lambda: tt.softmax(tt.randn(3, 6), 1), "signs": lambda: tt.randn(3, 6).sign(),
    "sign": lambda: tt.tensor([1.0, -1.0, 1.0]), "labels": lambda: tt.tensor([[1, 4, -1, 0, 0, 0], [2, -1, 0, 0, 0, 0], [0, 1, 2, 3, 4, -1]]),
}  # fmt: skip


def worn(norm: Any) -> Any:
    """A normalization whose running statistics are others than those of a new one."""
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    return norm


def pooled(d: int) -> Any:
    """Maxima and their places, put back."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.up = getattr(nn, f"MaxPool{d}d")(2, return_indices=True), getattr(nn, f"MaxUnpool{d}d")(2)

        def forward(self, x: tt.Tensor) -> tt.Tensor:
            return self.up(*self.down(x))

    return Both()


class LogProbabilities(nn.Module):
    """What AdaptiveLogSoftmaxWithLoss gives for every class."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        return self.inner.log_prob(x)


def layers() -> set[str]:
    found = {n for n in dir(nn) if inspect.isclass(getattr(nn, n)) and issubclass(getattr(nn, n), nn.Module)}
    return {n for n in found if not n.startswith("Lazy")}


def unlisted() -> list[str]:
    """Layers that nobody wrote a case for: those that need no argument are asked on rows all the same."""
    return sorted(layers() - set(CASES) - set(WHY_NOT))


def made_of_nothing(name: str) -> bool:
    """Whether a layer can be made without an argument."""
    parameters = inspect.signature(getattr(nn, name)).parameters.values()
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def test_every_layer_is_asked() -> None:
    assert [n for n in unlisted() if not made_of_nothing(n)] == [], "say in CASES how it is made and what it is given"
    assert sorted(set(CASES) & set(WHY_NOT)) == []


@pytest.mark.parametrize("name", unlisted())
def test_unlisted_layer_agrees(name: str) -> None:
    """A layer that PyTorch has not may be made of an op that nobody translated: then the error says how to."""
    try:
        agree(getattr(nn, name)(), (tt.randn(*ROW),), {0: {0: "batch"}})
    except UnsupportedOperatorError as error:
        refused = str(error)
        assert name not in recorded_names.names_of("nn")
        assert "say it with @tritensor.onnx.register" in refused


@pytest.mark.parametrize(("name", "k"), [(n, k) for n in CASES for k in range(len(CASES[n]))])
def test_layer_agrees(name: str, k: int) -> None:
    tt.manual_seed(k)
    make, given = CASES[name][k]
    args = tuple([MADE[s]() if isinstance(s, str) else tt.randn(*s) for s in given])
    agree(make(), args, {i: {0: "batch"} for i in range(len(args))})
