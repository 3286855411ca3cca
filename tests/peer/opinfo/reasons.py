"""Why an operation of PyTorch's database is not here, or fails samples: the operation's name, or the name with its variant, to one line."""

from __future__ import annotations

PRIVATE = "no name in torch but that of an operator under torch.ops, whose work public functions do"
HALF = "complex32 is no type here: numpy has none, and complex tensors live on the CPU"
SCALED = "the private door of scaled float8 products, whose types here are for storage alone"
CUDA_SOURCE = (
    "compiles CUDA C++ given as text; a kernel of one's own is written in Triton here, and PyTorch has no samples of it without a GPU"
)
SPARSE = "sparse tensors are not part of the library"

REASONS: dict[str, str] = {
    "svd_lowrank": "its random projection is drawn from another stream, and of a matrix that is not of low rank the answer is another approximation",
    "_batch_norm_with_update": PRIVATE,
    "_upsample_bilinear2d_aa": PRIVATE,
    "as_strided_scatter": "its gradient is that of finite differences, PyTorch's is the part that was overwritten",
    "chalf": HALF,
    "jiterator_2inputs_2outputs": CUDA_SOURCE,
    "jiterator_4inputs_with_extra_args": CUDA_SOURCE,
    "jiterator_binary": CUDA_SOURCE,
    "jiterator_binary_return_by_ref": CUDA_SOURCE,
    "jiterator_unary": CUDA_SOURCE,
    "max_pool2d_with_indices_backward": PRIVATE,
    "native_dropout_backward": PRIVATE,
    **dict.fromkeys(
        [*(f"polygamma/polygamma_n_{n}" for n in range(5)), "special.polygamma/special_polygamma_n_0"],
        "trigamma near its poles: PyTorch rounds pi x before it takes the sine, and is a few ulp further from the truth than this is",
    ),
    "slice": PRIVATE,
    "sparse.mm": SPARSE,
    "sparse.sampled_addmm": SPARSE,
    "to_sparse": SPARSE,
    "torch._scaled_mm": SCALED,
    "torch._scaled_mm_v2": SCALED,
    "torch.ops.aten._efficient_attention_forward": PRIVATE,
    "torch.ops.aten._flash_attention_forward": PRIVATE,
}
