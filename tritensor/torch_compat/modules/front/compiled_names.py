"""torch._C: questions that programs ask of PyTorch's compiled half, of transforms, devices and fusers."""

from __future__ import annotations

from tritensor import cuda
from tritensor.ground.device import device
from tritensor.ground.transforms import running
from tritensor.tensor.public_api.publish import public


def _are_functorch_transforms_active() -> bool:
    """Whether func.grad, func.vmap or another transform runs in this thread."""
    return bool(running.levels)


def _get_default_device() -> str:
    """The name of the device that new tensors are on."""
    return str(public["get_default_device"]())


def _get_accelerator() -> device:
    """The device beside the CPU, or the CPU where there is none."""
    return device("cuda" if cuda.is_available() else "cpu")


def _get_privateuse1_backend_name() -> str:
    """PyTorch's word for a device of somebody else's; there is none."""
    return "privateuseone"


def _jit_can_fuse_on_cpu() -> bool:
    """False: nothing is fused behind a program's back."""
    return False


def _jit_can_fuse_on_gpu() -> bool:
    """False: nothing is fused behind a program's back."""
    return False
