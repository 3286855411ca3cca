"""The calls that well-known networks make: an op's inputs in GPT-2 small, Llama-3 8B and ResNet-50, named after where they stand.

GPT-2 small (Radford et al. 2019): width 768, 12 heads of 64, 50,257 words; two texts of 1,024, all at once (2,048 rows).
Llama-3 8B (Grattafiori et al. 2024): width 4096, 32 heads of 128, 14,336 hidden units, 128,256 words; one text of 1,024.
ResNet-50 (He et al. 2015): 32 images of 224 x 224.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.ops.table import Sample

GPT2, LLAMA, RESNET = "GPT-2", "Llama-8B", "ResNet-50"
Draw = Callable[[Any], Sample]


def _drawn(*shapes: tuple[int, ...] | None, **attrs: Any) -> Draw:
    """A call on arrays of these shapes; None stands for an input that is left out."""
    return lambda rng: Sample(*(None if s is None else rng.standard_normal(s) for s in shapes), **attrs)


def _chosen(rows: int, classes: int) -> Draw:
    """A cross entropy of so many rows."""
    attrs = {"reduction": "mean", "ignore_index": -100, "label_smoothing": 0.0}
    return lambda rng: Sample(rng.standard_normal((rows, classes)), rng.integers(0, classes, (rows,)), None, **attrs)


def _looked_up(words: int, width: int, *texts: int) -> Draw:
    return lambda rng: Sample(rng.standard_normal((words, width)), rng.integers(0, words, texts), padding_idx=None)


def _conv(x: tuple[int, ...], weight: tuple[int, ...], stride: int) -> Draw:
    """A square window without bias, padded by half of it."""
    half = weight[-1] // 2
    return _drawn(x, weight, stride=(stride,) * 2, padding=(half,) * 2, dilation=(1, 1), groups=1)


_OVER_WIDTH = {"eps": 1e-5, "axes": 1}
_CAUSAL = {"causal": True, "p": 0.0, "seed": 0, "offset": 0}
# op: (where in which network, the call). Each op's in the order in which the table of its rows shows them.
MODEL_CALLS: dict[str, list[tuple[str, Draw]]] = {
    "linear": [
        (f"{GPT2}: first layer of the MLP", _drawn((2048, 768), (3072, 768), (3072,))),
        (f"{LLAMA}: projection of attention", _drawn((1024, 4096), (4096, 4096))),
        (f"{LLAMA}: gate of the MLP", _drawn((1024, 4096), (14336, 4096))),
        (f"{LLAMA}: gate of the MLP, one word", _drawn((1, 4096), (14336, 4096))),
        (f"{RESNET}: classifier", _drawn((32, 2048), (1000, 2048), (1000,))),
    ],
    "matmul": [
        (f"{GPT2}: queries by keys", _drawn((24, 1024, 64), (24, 64, 1024))),
        (f"{LLAMA}: queries by keys", _drawn((32, 1024, 128), (32, 128, 1024))),
    ],
    "attention": [
        (f"{GPT2}: attention", _drawn(*[(2, 12, 1024, 64)] * 3, None, scale=64**-0.5, causal=True)),
        (f"{LLAMA}: attention", _drawn(*[(1, 32, 1024, 128)] * 3, None, scale=128**-0.5, causal=True)),
    ],
    "flash_attention": [
        (f"{GPT2}: attention", _drawn(*[(2, 12, 1024, 64)] * 3, None, scale=64**-0.5, **_CAUSAL)),
        (f"{LLAMA}: attention", _drawn(*[(1, 32, 1024, 128)] * 3, None, scale=128**-0.5, **_CAUSAL)),
    ],
    "softmax": [
        (f"{GPT2}: attention weights", _drawn((2, 12, 1024, 1024), dim=3)),
        (f"{LLAMA}: attention weights", _drawn((1, 32, 1024, 1024), dim=3)),
        (f"{LLAMA}: next word", _drawn((1, 128256), dim=1)),
        (f"{RESNET}: classes", _drawn((32, 1000), dim=1)),
    ],
    "log_softmax": [(f"{GPT2}: next words", _drawn((2048, 50257), dim=1)), (f"{LLAMA}: next words", _drawn((1024, 128256), dim=1))],
    "cross_entropy": [
        (f"{GPT2}: next words", _chosen(2048, 50257)),
        (f"{LLAMA}: next words", _chosen(1024, 128256)),
        (f"{RESNET}: classes", _chosen(32, 1000)),
    ],
    "layer_norm": [(f"{GPT2}: every norm", _drawn((2048, 768), (768,), (768,), **_OVER_WIDTH))],
    "rms_norm": [(f"{LLAMA}: every norm", _drawn((1024, 4096), (4096,), **_OVER_WIDTH))],
    "embedding": [(f"{GPT2}: words", _looked_up(50257, 768, 2, 1024))],
    "gelu": [(f"{GPT2}: MLP", _drawn((2048, 3072), approximate="tanh"))],
    "silu": [(f"{LLAMA}: MLP", _drawn((1024, 14336)))],
    "mul": [(f"{LLAMA}: gate of the MLP", _drawn((1024, 14336), (1024, 14336)))],
    "add": [
        (f"{GPT2}: residual", _drawn((2048, 768), (2048, 768))),
        (f"{LLAMA}: residual", _drawn((1024, 4096), (1024, 4096))),
        (f"{RESNET}: residual of the first stage", _drawn((32, 256, 56, 56), (32, 256, 56, 56))),
    ],
    "relu": [(f"{RESNET}: after the first layer", _drawn((32, 64, 112, 112)))],
    "conv2d": [
        (f"{RESNET}: first layer", _conv((32, 3, 224, 224), (64, 3, 7, 7), 2)),
        (f"{RESNET}: 3 x 3 of the first stage", _conv((32, 64, 56, 56), (64, 64, 3, 3), 1)),
        (f"{RESNET}: 1 x 1 of the first stage", _conv((32, 256, 56, 56), (64, 256, 1, 1), 1)),
        (f"{RESNET}: 3 x 3 of the last stage", _conv((32, 512, 7, 7), (512, 512, 3, 3), 1)),
    ],
    "batch_norm": [(f"{RESNET}: after the first layer", _drawn((32, 64, 112, 112), (64,), (64,), eps=1e-5))],
    "max_pool2d": [
        (f"{RESNET}: after the first layer",
         _drawn((32, 64, 112, 112), kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), ceil_mode=False, dilation=(1, 1))),
    ],
}  # fmt: skip


def model_calls(op: str, rng: Any) -> list[tuple[str, Sample]]:
    """(where in which network, the call) for an op; [] where no network of these calls it."""
    return [(where, draw(rng)) for where, draw in MODEL_CALLS.get(op, ())]
