"""Hints for whole kinds of names that are not here (sparse and nested tensors, quantization, tracing): their use, and the code to write in their place."""

from __future__ import annotations

import re
from typing import NamedTuple


class Hint(NamedTuple):
    """Names of one kind: modules with all that lies in them, names in any module (a pattern for the whole name), and what is said."""

    modules: tuple[str, ...]
    names: str
    said: str


HINTS = (
    Hint(
        ("sparse", "cuda.sparse"),
        "(to_)?sparse_?.*|.*_(as_)?sparse_|coalesce|(ccol_|col_|crow_|row_)?indices(_copy)?|values(_copy)?"
        "|smm|hspmm|saddmm|sspaddmm|(Float|Double)?SparseTensor",
        "there are no sparse tensors here: keep the matrix dense, or its rows, columns and values as three tensors, whose product with a dense x is "
        "zeros(n, d).index_add(0, rows, values[:, None] * x[cols]); of scipy's matrices, tensor(m.toarray())",
    ),
    Hint(
        ("nested",),
        "nested_.*|jagged|to_padded_tensor",
        "there are no nested tensors here: pad with nn.utils.rnn.pad_sequence(list, batch_first=True) and give the layers a mask, or "
        "pack with nn.utils.rnn.pack_sequence for recurrent nets",
    ),
    Hint(
        ("ao", "quantization", "nn.quantized", "nn.qat", "nn.intrinsic", "nn.quantizable"),
        "q_(per_channel_.*|scale|zero_point)|qscheme|(fused_moving_avg_obs_)?fake_quant.*|quantized?_.*|dequantize|int_repr|q?u?int[1-8]x?[0-9]*|quint.*|qint.*"
        "|empty_quantized|choose_qparams_optimized|Q(UI|I)nt.*Storage|intrinsic|qat|quantizable|quantized",
        "nothing is quantized here: cast to float16 or bfloat16 to halve a model; to try rounding in training, "
        "x + ((x / s).round().clamp(-128, 127) * s - x).detach()",
    ),
    Hint(
        ("profiler.itt", "autograd.profiler_legacy", "cuda.profiler", "cuda._memory_viz", "utils.bottleneck"),
        "profiler_legacy|itt|emit_itt|ExecutionTraceObserver|bottleneck|Profiler(Config|Event|State)",
        "tritensor.profiler.profile shows what a program does, as a table or a trace; cuda.nvtx and autograd.profiler.emit_nvtx mark stretches for "
        "`nsys profile python ...`",
    ),
    Hint(
        ("export", "package", "fx", "utils.mobile_optimizer", "utils.bundled_inputs", "utils.model_dump"),
        "",
        "nothing is traced here: save model.state_dict() and build the model from its class",
    ),
    Hint(
        ("utils.mkldnn",),
        "(to_)?mkldnn.*",
        "drop the call: arrays on the CPU have one layout, whoever computes on them",
    ),
    Hint(
        ("nn.attention.varlen",),
        "varlen_attn(_out)?",
        "write the scores' mask as a tensor and give it to nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask): True where attention goes, "
        "or floats that are added",
    ),
    Hint(
        ("masked.maskedtensor",),
        "MaskedTensor|masked_tensor|as_masked_tensor",
        "keep values and mask as two tensors: tritensor.masked.sum(x, mask=mask) and its kin reduce them",
    ),
    Hint((), "grouped_mm|scaled_(grouped_)?mm|ScalingType|SwizzleType", "products of float8 are not here: cast to bfloat16 and use matmul; of groups, bmm"),
    Hint((), "chalf|complex32", "complex numbers are complex64 and complex128: x.cfloat()"),
    Hint((), "xpu|ipu|mtia", "devices are cpu and cuda"),
)  # fmt: skip


def hint_for(path: str, name: str) -> str:
    """What is said of a name that PyTorch has in its module `path`, or of the module itself where `name` is "" ; "" where nothing is."""
    whole = f"{path}.{name}".strip(".")
    for known in HINTS:
        # The first that fits: the order of HINTS says which. The patterns take long to compile, and most programs miss no name: `re` keeps what it compiles.
        if any(whole == m or whole.startswith(m + ".") for m in known.modules) or (name and re.fullmatch(known.names, name)):
            return known.said
    return ""
