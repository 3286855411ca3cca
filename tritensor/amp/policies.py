"""Autocast policies of functions made of several ops, by PyTorch's lists; single ops have theirs in their record (`autocast`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from tritensor import fft, linalg, nn, special
from tritensor.dispatch.autocast import casting
from tritensor.ground.process import locks
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public, reroute

Policy = str | Callable[[tuple[Any, ...], dict[str, Any]], str | None]

_LOSSES = (
    "cosine_embedding_loss cross_entropy hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss "
    "multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss "
    "binary_cross_entropy_with_logits"
)
_PRODUCTS = (
    "matmul mm bmm addmm addbmm baddbmm vecdot conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d "
    "linear scaled_dot_product_attention prelu"
)
CPU: dict[str, str] = {
    "lower": _PRODUCTS,
    "float32": _LOSSES
    + " binary_cross_entropy ctc_loss cdist view_as_complex stft quantile nanquantile polar prod trace grid_sample grid_sampler grid_sampler_2d "
    "grid_sampler_3d adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d fractional_max_pool2d fractional_max_pool3d max_unpool1d "
    "max_unpool2d max_unpool3d cholesky cholesky_inverse cholesky_solve geqrf inverse lu_solve orgqr ormqr pinverse qr svd triangular_solve "
    "linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.householder_product "
    "linalg.inv linalg.inv_ex linalg.lstsq linalg.matrix_rank linalg.qr linalg.solve linalg.svd linalg.svdvals linalg.tensorinv "
    "linalg.tensorsolve fft.fft fft.fft2 fft.fftn fft.ifft fft.ifft2 fft.ifftn fft.rfft fft.rfft2 fft.rfftn fft.irfft fft.irfft2 fft.irfftn "
    "fft.hfft fft.ihfft lstm_cell gru_cell",
    "widest": "cat stack index_copy",
    "plain": "bilinear dot vdot mv addmv addr",  # which PyTorch does not see as products of matrices on the CPU
}
CUDA: dict[str, str] = {
    "lower": _PRODUCTS
    + " addmv addr mv einsum chain_matmul multi_dot lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
    "float32": _LOSSES
    + " gaussian_nll_loss acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm rms_norm group_norm "
    "nuclear_norm cosine_similarity dist pdist cdist renorm logsumexp interpolate upsample upsample_nearest upsample_bilinear prod softmax "
    "softmin log_softmax cumprod cumsum vector_norm matrix_norm norm sum",
    "widest": "addcdiv addcmul atan2 bilinear cross dot vdot inner grid_sample grid_sampler index_put tensordot scatter_add",
    "refused": "binary_cross_entropy",
}


def _pad_policy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """pad: those that repeat the edge or mirror it go up to float32, as on PyTorch's CPU."""
    mode = args[2] if len(args) > 2 else kwargs.get("mode", "constant")
    widths = len(args[1] if len(args) > 1 else kwargs.get("pad", ()))
    return "float32" if mode == "replicate" or (mode == "reflect" and widths < 6) else None


def _inner_policy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """inner: of vectors a sum of products, of more dimensions a product of matrices, which PyTorch's CPU sees."""
    ndims = [x.ndim for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
    return "plain" if 0 in ndims or max(ndims) == 1 else "lower"


def _max_pool3d_policy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """max_pool3d: up to float32, but with indices as it comes, as on PyTorch's CPU."""
    return None if kwargs.get("return_indices") or (len(args) > 6 and args[6]) else "float32"


def policies() -> dict[str, dict[str, Policy]]:
    """By a function's name what is done on each type of device."""
    found: dict[str, dict[str, Policy]] = {
        "pad": {"cpu": _pad_policy},
        "max_pool3d": {"cpu": _max_pool3d_policy},
        "inner": {"cpu": _inner_policy},
    }
    for device, lists in (("cpu", CPU), ("cuda", CUDA)):
        for policy, names in lists.items():
            for name in names.split():
                found.setdefault(name, {})[device] = policy
    return found


def find_functions(name: str) -> list[Any]:
    """The functions that a name of the lists means, where they are here: of the top-level namespace, of Tensor, of nn.functional, of linalg or fft."""
    space, _, short = name.rpartition(".")
    if space:
        places = [vars({"linalg": linalg, "fft": fft}[space])]
    else:
        places = [public, vars(nn.functional), dict(vars(Tensor)), vars(special), vars(linalg) if short in _PRODUCTS_OF_LINALG else {}]
    found = [place[short] for place in places if short in place]
    return [f for f in found if isinstance(f, FunctionType)]


_PRODUCTS_OF_LINALG = ("vecdot", "multi_dot", "vector_norm", "matrix_norm", "cross")
_install_lock = locks.lock()
_installed: set[int] = set()


def install() -> None:
    """Let the functions of the lists ask how they are cast. Done once, when a thread first wants it."""
    with _install_lock:
        # Another thread was first.
        if _installed:
            return
        for name, policy in policies().items():
            # A function may be in several namespaces under one object: it is wrapped once.
            for call in find_functions(name):
                if id(call) not in _installed and reroute(call, partial(casting, policy=policy, who=name)):
                    _installed.add(id(call))
        # PyTorch lists pow for CUDA; operators do not pass through the wrapped function.
        for operator in ("__pow__", "__rpow__"):
            setattr(Tensor, operator, casting(vars(Tensor)[operator], {"cuda": "float32"}, "pow"))
