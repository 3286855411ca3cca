"""tritensor: PyTorch's programming model on Triton, without torch. This is the front door: everything public hangs here."""

import builtins as _builtins
import functools as _functools
import importlib as _importlib
import os as _os
import sys as _sys
import typing as _typing
import warnings as _warnings
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from tritensor.ground.process.collector import settling as _settling

with _settling():
    from tritensor import autograd as autograd
    from tritensor import cuda as cuda
    from tritensor import data as data
    from tritensor import fft as fft
    from tritensor import io as io
    from tritensor import kernels as kernels
    from tritensor import linalg as linalg
    from tritensor import masked as masked
    from tritensor import nn as nn
    from tritensor import optim as optim
    from tritensor import random as random
    from tritensor import special as special
    from tritensor import torch_compat as _paths
    from tritensor import utils as utils
    from tritensor.autograd import enable_grad as enable_grad
    from tritensor.autograd import inference_mode as inference_mode
    from tritensor.autograd import no_grad as no_grad
    from tritensor.autograd import set_grad_enabled as set_grad_enabled
    from tritensor.autograd.anomaly_mode import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
    from tritensor.autograd.anomaly_mode import is_anomaly_enabled as is_anomaly_enabled
    from tritensor.autograd.modes import is_grad_enabled as is_grad_enabled
    from tritensor.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
    from tritensor.ground import dtypes as _dtypes
    from tritensor.ground import providers as _providers
    from tritensor.ground import strides as _strides
    from tritensor.ground.device import device as device
    from tritensor.ground.dtypes import DType as dtype
    from tritensor.ground.errors import ArgumentError as ArgumentError
    from tritensor.ground.errors import CaptureError as CaptureError
    from tritensor.ground.errors import CheckpointError as CheckpointError
    from tritensor.ground.errors import DeviceError as DeviceError
    from tritensor.ground.errors import DivisionByZeroError as DivisionByZeroError
    from tritensor.ground.errors import DTypeError as DTypeError
    from tritensor.ground.errors import EmptyError as EmptyError
    from tritensor.ground.errors import GradError as GradError
    from tritensor.ground.errors import LaunchError as LaunchError
    from tritensor.ground.errors import LinAlgError as LinAlgError
    from tritensor.ground.errors import MissingFileError as MissingFileError
    from tritensor.ground.errors import NoDerivativeError as NoDerivativeError
    from tritensor.ground.errors import NoValuesError as NoValuesError
    from tritensor.ground.errors import NumberRangeError as NumberRangeError
    from tritensor.ground.errors import OutOfMemoryError as OutOfMemoryError
    from tritensor.ground.errors import OutOfRangeError as OutOfRangeError
    from tritensor.ground.errors import RegistrationError as RegistrationError
    from tritensor.ground.errors import ShapeError as ShapeError
    from tritensor.ground.errors import TransformError as TransformError
    from tritensor.ground.strides import channels_last as channels_last
    from tritensor.ground.strides import channels_last_3d as channels_last_3d
    from tritensor.ground.strides import contiguous_format as contiguous_format
    from tritensor.ground.strides import contiguous_format as legacy_contiguous_format  # noqa: F401
    from tritensor.ground.strides import preserve_format as preserve_format
    from tritensor.io import load as load
    from tritensor.io import save as save
    from tritensor.ops.matmul_precision import get_float32_matmul_precision as get_float32_matmul_precision
    from tritensor.ops.matmul_precision import set_float32_matmul_precision as set_float32_matmul_precision
    from tritensor.ops.table import Op as Op
    from tritensor.ops.table import Sample as Sample
    from tritensor.ops.table import Spec as Spec
    from tritensor.ops.table import Work as Work
    from tritensor.ops.table import op as op
    from tritensor.ops.table import ops as ops
    from tritensor.random import Generator as Generator
    from tritensor.random import default_generator as default_generator
    from tritensor.random import get_rng_state as get_rng_state
    from tritensor.random import initial_seed as initial_seed
    from tritensor.random import manual_seed as manual_seed
    from tritensor.random import seed as seed
    from tritensor.random import set_rng_state as set_rng_state
    from tritensor.tensor.core import Tensor as Tensor
    from tritensor.tensor.functions.types.storages import TypedStorage as TypedStorage
    from tritensor.tensor.functions.types.storages import UntypedStorage as UntypedStorage
    from tritensor.tensor.printing import set_printoptions as set_printoptions
    from tritensor.tensor.public_api.layout import layout as layout
    from tritensor.tensor.public_api.layout import strided as strided
    from tritensor.tensor.public_api.op_forms import published_names as _of_ops
    from tritensor.tensor.public_api.op_forms import set_namespace as _opened
    from tritensor.tensor.public_api.publish import checked as _checked
    from tritensor.tensor.public_api.publish import namespaces as _namespaces
    from tritensor.tensor.public_api.publish import public as _public
    from tritensor.tensor.size import Size as Size
    from tritensor.torch_compat.autocast import clear_autocast_cache as clear_autocast_cache
    from tritensor.torch_compat.autocast import get_autocast_cpu_dtype as get_autocast_cpu_dtype
    from tritensor.torch_compat.autocast import get_autocast_dtype as get_autocast_dtype
    from tritensor.torch_compat.autocast import get_autocast_gpu_dtype as get_autocast_gpu_dtype
    from tritensor.torch_compat.autocast import is_autocast_cache_enabled as is_autocast_cache_enabled
    from tritensor.torch_compat.autocast import is_autocast_cpu_enabled as is_autocast_cpu_enabled
    from tritensor.torch_compat.autocast import is_autocast_enabled as is_autocast_enabled
    from tritensor.torch_compat.autocast import set_autocast_cache_enabled as set_autocast_cache_enabled
    from tritensor.torch_compat.autocast import set_autocast_cpu_dtype as set_autocast_cpu_dtype
    from tritensor.torch_compat.autocast import set_autocast_cpu_enabled as set_autocast_cpu_enabled
    from tritensor.torch_compat.autocast import set_autocast_dtype as set_autocast_dtype
    from tritensor.torch_compat.autocast import set_autocast_enabled as set_autocast_enabled
    from tritensor.torch_compat.autocast import set_autocast_gpu_dtype as set_autocast_gpu_dtype
    from tritensor.torch_compat.finder import look_up as _look_up
    from tritensor.torch_compat.settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
    from tritensor.torch_compat.settings import get_deterministic_debug_mode as get_deterministic_debug_mode
    from tritensor.torch_compat.settings import get_device_module as get_device_module
    from tritensor.torch_compat.settings import get_num_interop_threads as get_num_interop_threads
    from tritensor.torch_compat.settings import get_num_threads as get_num_threads
    from tritensor.torch_compat.settings import (
        is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    )
    from tritensor.torch_compat.settings import is_vulkan_available as is_vulkan_available
    from tritensor.torch_compat.settings import is_warn_always_enabled as is_warn_always_enabled
    from tritensor.torch_compat.settings import set_deterministic_debug_mode as set_deterministic_debug_mode
    from tritensor.torch_compat.settings import set_flush_denormal as set_flush_denormal
    from tritensor.torch_compat.settings import set_num_interop_threads as set_num_interop_threads
    from tritensor.torch_compat.settings import set_num_threads as set_num_threads
    from tritensor.torch_compat.settings import set_warn_always as set_warn_always
    from tritensor.torch_compat.settings import use_deterministic_algorithms as use_deterministic_algorithms
    from tritensor.torch_compat.symbolic_sizes import sym_float as sym_float
    from tritensor.torch_compat.symbolic_sizes import sym_int as sym_int
    from tritensor.torch_compat.symbolic_sizes import sym_ite as sym_ite
    from tritensor.torch_compat.symbolic_sizes import sym_max as sym_max
    from tritensor.torch_compat.symbolic_sizes import sym_min as sym_min
    from tritensor.torch_compat.symbolic_sizes import sym_not as sym_not
    from tritensor.torch_compat.symbolic_sizes import sym_sqrt as sym_sqrt
    from tritensor.torch_compat.symbolic_sizes import sym_sum as sym_sum
    from tritensor.triton_kernels import import_hook as _import_hook

__version__ = "0.1.0"


# Modules that few programs need: imported when they are asked for.
_LATE_MODULES = (
    "amp", "array_api", "audio", "debug", "distributed", "func", "hub", "models", "onnx", "profiler", "signal", "training", "tuning", "vision", "viz",
)  # fmt: skip


def __getattr__(name: str) -> _typing.Any:
    """Modules that few programs need are imported when they are asked for: `tritensor.debug`."""
    if name in _LATE_MODULES:
        return _importlib.import_module(f"tritensor.{name}")
    if name == "vmap":
        from tritensor.func import vmap

        return vmap
    if name == "Trainer":
        from tritensor.training import Trainer

        return Trainer
    if name in _LATE_FUNCTIONS:
        module, _, attribute = _LATE_FUNCTIONS[name].partition(":")
        found = _importlib.import_module(f"tritensor.{module}")
        globals()[name] = made = getattr(found, attribute) if attribute else found
        return made
    return _look_up("", name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted({*__all__, *_LAZY, *_namespaces, *_of_ops()})


def get_default_dtype() -> dtype:
    """The floating type of `tensor(1.5)` and `rand(3)`; float32 unless set_default_dtype changed it."""
    return _dtypes.default_float()


def set_default_dtype(dtype: _typing.Any) -> None:
    """Make `dtype` (float16, bfloat16, float32 or float64) the floating type of `tensor(1.5)` and `rand(3)`."""
    _dtypes.set_default_float(dtype)


def is_tensor(x: object) -> bool:
    """Whether x is a Tensor."""
    return isinstance(x, Tensor)


@_checked
def numel(input: "Tensor") -> _builtins.int:
    """How many elements a tensor has."""
    return input.numel()


@_checked
def is_floating_point(input: "Tensor") -> _builtins.bool:
    """Whether a tensor's type is a floating one."""
    return input.is_floating_point()


_import_hook.install()
# Modules that lower floors call now and then (ground/providers.py).
_providers.register("", lambda: _sys.modules["tritensor"])
for _name in (
    "array_api", "compilation.compile", "data.loader_view", "dispatch.meta", "distributed", "distributed.process_group",
    "distributed.shared_batch_norm", "func", "func.forward_ad", "func.jacobians", "kernels.own_layouts", "lazy_evaluation.recording",
    "multiprocessing", "nn.functional", "nn.init", "return_types", "tensor.overriding.interception", "torch_compat.finder",
    "torch_dispatch.instances", "torch_dispatch.interpreter", "torch_dispatch.overloads", "utils.compiled_extensions",
):  # fmt: skip
    _providers.register(_name, _functools.partial(_importlib.import_module, f"tritensor.{_name}"))
newaxis = None
memory_format = _strides.MemoryFormat


# As in PyTorch, log(0) is -inf and 0/0 is nan without a word; numpy would warn. Only warnings raised in our own modules are silenced.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tritensor\.")
# The types under PyTorch's names, among them `bool`, `int` and `float`, and the functions that the tensor floor published.
globals().update({d.name: d for d in _dtypes.ALL})
globals().update(
    {n.rstrip("_"): getattr(_dtypes, n) for n in ("half", "float_", "double", "bfloat", "short", "int_", "long", "cfloat", "cdouble")}
)
globals().update(_public)

# What kernels are written with, beside op, Spec, Sample and Work: importing these loads Triton (docs/kernels.md).
_LATE_FUNCTIONS = {
    "compile": "compilation.compile:compile",
    "elementwise": "kernels.parts.elementwise:elementwise",
    "evaluate": "lazy_evaluation.modes:evaluate",
    "launch": "cuda.launch:launch",
    "lazy": "lazy_evaluation.modes:lazy",
    "parts": "kernels.parts",
    "reduction": "kernels.parts.reduction:reduction",
}
# Imported when they are asked for.
_LAZY = (
    *_LATE_FUNCTIONS,
    *_LATE_MODULES,
    "GradScaler",
    "Trainer",
    "accelerator",
    "autocast",
    "backends",
    "compiler",
    "distributions",
    "jit",
    "multiprocessing",
    "testing",
    "types",
    "version",
    "vmap",
)
_paths.install()

# Rooms of the house that importing has left here; no names for users.
_ROOMS = {"dispatch", "ground", "llvm", "tools", "torch_compat", "triton_kernels", "errors", "table", "tuning"}
__all__ = sorted(n for n in globals() if not n.startswith("_") and n not in _ROOMS)
_opened(globals(), _LAZY)

if _os.environ.get("TRITENSOR_LAZY", "0") not in ("", "0"):
    from tritensor.lazy_evaluation import modes as _modes

    _modes.begin_everywhere()
