"""State of a parameter in an optimizer: new tensors of its shape, numbers that may be tensors, the conversion of a loaded state."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.cuda.streams.capture import capturing, refusal
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import CudaArray
from tritensor.ops.lazy_array import compute_now
from tritensor.ops.strided_array import StridedArray
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.public_api.publish import public

_F32 = np.dtype(np.float32)


def filled_like(p: Tensor, value: float = 0.0) -> Tensor:
    """Fresh state of a parameter's shape, type, strides and place; of complex ones both parts. Raises CaptureError in the capture of a CUDA graph."""
    refuse_in_capture(p)
    a = p._array
    if type(a) is WrappedArray:  # of a class that says itself what its zeros are
        return public["full_like"](p.detach(), value)  # type: ignore[no-any-return]
    if isinstance(a, StridedArray):
        return _to_part(p, ops.full(shape=tuple(a.shape), value=value, dtype=a.dtype, device=p.device))
    return _to_part(p, new_tensor(np.full_like(a, complex(value, value) if a.dtype.kind == "c" else value, order="K")))


def _to_part(p: Tensor, state: Tensor) -> Tensor:
    """State of a parameter's shape; of a shard it is a shard itself, so that who looks at it knows that other processes have the rest."""
    as_part = getattr(p, "as_part", None)
    return state if as_part is None else as_part(state)  # type: ignore[no-any-return]


def refuse_in_capture(p: Tensor) -> None:
    """State that came to exist in the capture of a CUDA graph would be made anew, as zeros, by every replay."""
    if p.device.type == "cuda" and capturing(p.device.index or 0) is not None:
        raise refusal(
            "makes the optimizer's state, which every replay would make anew and so forget",
            "take one step before the capture (forward, backward, step), so that moments and step counts exist",
        )


def is_on_gpu(x: Any) -> bool:
    """Whether a number is a tensor on a GPU, which kernels read there, so that a CUDA graph sees it change."""
    if not isinstance(x, Tensor):
        return False
    compute_now(x)
    return isinstance(x._array, CudaArray)


def to_number(x: Any) -> float:
    """A number, or the one a tensor holds."""
    return float(x.item()) if isinstance(x, Tensor) else float(x)


def read_rate(group: dict[str, Any]) -> Any:
    """A group's learning rate as a number."""
    lr = group["lr"]
    return lr.item() if isinstance(lr, Tensor) else lr


def copy_rate(rate: Any) -> Any:
    """A learning rate to keep: of a tensor a copy, since the group's own is written into."""
    return rate.detach().clone() if isinstance(rate, Tensor) else rate


def copy_rates(groups: list[dict[str, Any]]) -> list[Any]:
    """The groups' learning rates as they are now, to keep."""
    return [copy_rate(group["lr"]) for group in groups]


def write_rate(group: dict[str, Any], lr: Any) -> None:
    """Set a group's learning rate. A tensor stays the tensor it is, so that a CUDA graph that reads it sees the new value."""
    if isinstance(group["lr"], Tensor):
        with no_grad():
            group["lr"].fill_(lr.reshape(()) if isinstance(lr, Tensor) else lr)
    else:
        group["lr"] = copy_rate(lr)


def new_step_count(value: Any = 0.0) -> Tensor:
    """A step count as PyTorch keeps it: a float32 tensor without dimensions, on the CPU."""
    return new_tensor(np.array(value, _F32))  # float32, as PyTorch's state dicts have it


def adopt_state(value: Any, p: Tensor, name: str, scalars: tuple[str, ...]) -> Any:
    """A copy of loaded state: floating tensors in the parameter's type and place, also inside dicts and lists; `scalars` stay float32, and
    become tensors where they were none. A user's optimizer has its numbers back as they were, a tensor "step" in its own type."""
    if name in scalars:
        return new_step_count(to_number(value)) if not is_on_gpu(value) else value.detach().clone()
    if name == "step" and isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {k: adopt_state(v, p, k, scalars) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(adopt_state(v, p, "", scalars) for v in value)
    if not isinstance(value, Tensor):
        return deepcopy(value)
    value = value.detach()
    floating = (value.is_floating_point() or value.is_complex()) and (p.is_floating_point() or p.is_complex())
    return _to_part(p, value.to(device=p.device, dtype=p.dtype if floating else value.dtype, copy=True))
