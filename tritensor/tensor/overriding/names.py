"""Names of what is overridden, and how: which functions are never, which by modes alone, which method an operator stands for in PyTorch."""

from __future__ import annotations

SPACES = ("linalg", "fft", "special")
INIT = ("uniform_", "normal_", "constant_", "kaiming_uniform_")

# Functions that take no tensors, or take them for data: modes see them, classes of arguments do not.
BY_MODES_ALONE = frozenset((
    "arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "can_cast", "empty", "empty_permuted", "empty_quantized", "empty_strided",
    "eye", "fftfreq", "from_file", "frombuffer", "full", "hamming_window", "hann_window", "kaiser_window", "ones", "promote_types",
    "rand", "randint", "randn", "randperm", "range", "rfftfreq", "scalar_tensor", "sparse_bsc_tensor", "sparse_bsr_tensor",
    "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "tensor", "tril_indices", "triu_indices", "zeros",
))  # fmt: skip
# Those that modes do not see either.
NEVER = frozenset((
    "assert_int_or_pair", "boolean_dispatch", "broadcast_shapes", "from_dlpack", "from_numpy", "get_default_device", "get_rng_state",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "initial_seed", "is_storage",
    "is_tensor", "manual_seed", "seed", "set_default_device", "set_default_tensor_type", "set_rng_state", "to_dlpack", "typename",
    "upsample_bilinear", "upsample_nearest", "wrap",
))  # fmt: skip

# The method whose name a handler gets for an operator; "": the operator's own.
OPERATORS = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__rsub__": "", "__isub__": "sub_", "__mul__": "mul", "__rmul__": "mul",
    "__imul__": "mul_", "__truediv__": "div", "__rtruediv__": "", "__rdiv__": "", "__itruediv__": "div_", "__floordiv__": "", "__rfloordiv__": "",
    "__ifloordiv__": "floor_divide_", "__mod__": "remainder", "__rmod__": "", "__imod__": "remainder_", "__pow__": "", "__rpow__": "", "__ipow__": "",
    "__matmul__": "matmul", "__rmatmul__": "", "__imatmul__": "matmul", "__and__": "", "__rand__": "bitwise_and", "__iand__": "", "__or__": "",
    "__ror__": "bitwise_or", "__ior__": "", "__xor__": "", "__rxor__": "bitwise_xor", "__ixor__": "", "__lshift__": "", "__rlshift__": "",
    "__ilshift__": "", "__rshift__": "", "__rrshift__": "", "__irshift__": "", "__eq__": "", "__ne__": "ne", "__lt__": "lt", "__le__": "le",
    "__gt__": "gt", "__ge__": "ge", "__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__invert__": "",
}  # fmt: skip
# Operators whose handlers are asked whatever the other operand is; those of the others, where a tensor could have taken it.
ANY_OPERAND = frozenset((
    "__eq__", "__rsub__", "__rtruediv__", "__rdiv__", "__floordiv__", "__rfloordiv__", "__rmod__", "__pow__", "__rpow__", "__ipow__", "__rmatmul__",
    "__rlshift__", "__rrshift__",
))  # fmt: skip

# Of the methods that begin with an underscore those that are overridden.
PRIVATE_METHODS = frozenset((
    "__array__", "__bool__", "__complex__", "__contains__", "__deepcopy__", "__dir__", "__dlpack__", "__dlpack_device__", "__float__", "__format__",
    "__getitem__", "__index__", "__int__", "__len__", "__reduce_ex__", "__repr__", "__reversed__", "__setitem__", "__setstate__", "_base", "_is_view",
    "_version", "_backward_hooks",
))  # fmt: skip
# Methods that are not: this library's own, and those that make tensors of the class that is asked for.
NEVER_METHODS = frozenset((
    "as_subclass", "_record_view_of", "_set_node", "wrap", "_heading",
))  # fmt: skip

# Functions and methods that PyTorch writes in Python: their handlers get what must be given by place and the rest by name, and Tensor among the types.
BOUND = frozenset((
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft",
    "lobpcg", "lu", "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index",
))  # fmt: skip
BOUND_METHODS = frozenset((
    "__array__", "__contains__", "__deepcopy__", "__dlpack__", "__dlpack_device__", "__floordiv__", "__format__", "__ipow__", "__len__", "__pow__",
    "__rdiv__", "__reduce_ex__", "__reversed__", "__rfloordiv__", "__rlshift__", "__rmatmul__", "__rmod__", "__rpow__", "__rrshift__", "__rsub__",
    "__rtruediv__", "backward", "dim_order", "is_shared", "istft", "lu", "norm", "register_hook", "register_post_accumulate_grad_hook", "resize",
    "resize_as", "share_memory_", "split", "stft", "storage", "unique", "unique_consecutive",
))  # fmt: skip
BOUND_NN = frozenset((
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "affine_grid", "alpha_dropout", "batch_norm",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "cosine_embedding_loss", "cross_entropy", "ctc_loss", "dropout", "dropout1d",
    "dropout2d", "dropout3d", "elu", "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices", "gaussian_nll_loss", "glu", "grid_sample",
    "group_norm", "gumbel_softmax", "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss",
    "layer_norm", "leaky_relu", "linear_cross_entropy", "local_response_norm", "log_softmax", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "margin_ranking_loss", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices",
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "normalize", "pad", "poisson_nll_loss", "relu", "relu6", "rms_norm", "rrelu", "selu", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softsign", "tanhshrink", "triplet_margin_loss", "triplet_margin_with_distance_loss",
    "unfold",
))  # fmt: skip
BOUND_AUTOGRAD = frozenset(("grad", "backward"))


def is_bound(space: str, name: str) -> bool:
    """Whether handlers of `torch.<space>.<name>` get bound arguments."""
    known = {
        "torch": BOUND,
        "torch.Tensor": BOUND_METHODS,
        "torch.nn.functional": BOUND_NN,
        "torch.nn.init": frozenset(INIT),
        "torch.autograd": BOUND_AUTOGRAD,
    }
    return name in known.get(space, ())
