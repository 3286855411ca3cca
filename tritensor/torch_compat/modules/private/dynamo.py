"""torch._dynamo: names of the compiler that programs use; no bytecode is traced, marks change nothing, settings are remembered."""

from __future__ import annotations

from typing import Any

from tritensor.compilation.compile import compile
from tritensor.compilation.control import given_back
from tritensor.compilation.optimized_module import OptimizedModule as OptimizedModule
from tritensor.torch_compat.modules.compiler import allow_in_graph as allow_in_graph
from tritensor.torch_compat.modules.compiler import assume_constant_result as assume_constant_result
from tritensor.torch_compat.modules.compiler import disable as disable
from tritensor.torch_compat.modules.compiler import explain as explain
from tritensor.torch_compat.modules.compiler import is_compiling as is_compiling
from tritensor.torch_compat.modules.compiler import list_backends as list_backends
from tritensor.torch_compat.modules.compiler import reset as reset
from tritensor.torch_compat.modules.compiler import set_stance as set_stance
from tritensor.torch_compat.modules.compiler import substitute_in_graph as substitute_in_graph
from tritensor.torch_compat.modules.private.compiler_settings import Settings

# PyTorch's values.
config = Settings("_dynamo.config", {
    "accumulated_cache_size_limit": 256, "accumulated_recompile_limit": 256, "allow_rnn": False, "allow_unspec_int_on_nn_module": False,
    "assume_static_by_default": True, "automatic_dynamic_shapes": True, "cache_size_limit": 8, "capture_dynamic_output_shape_ops": False,
    "capture_scalar_outputs": False, "compiled_autograd": False, "disable": False, "dynamic_shapes": True, "error_on_recompile": False,
    "fail_on_recompile_limit_hit": False, "force_parameter_static_shapes": True, "guard_nn_modules": True, "inline_inbuilt_nn_modules": True,
    "optimize_ddp": True, "recompile_limit": 8, "skip_fsdp_guards": True, "specialize_float": False, "specialize_int": False,
    "suppress_errors": False, "trace_numpy": True, "verbose": False,
})  # fmt: skip


def optimize(backend: Any = None, *, nopython: bool = False, dynamic: bool | None = None, disable: bool = False, **_: Any) -> Any:
    """A decorator, as `compile(backend=..., fullgraph=nopython)` gives: the older name of it."""
    return compile(backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable)


def is_dynamo_supported() -> bool:
    """True: functions are compiled, though no bytecode is traced."""
    return True


def graph_break(msg: str = "") -> None:
    """Nothing: there is no graph to break."""


disallow_in_graph = forbid_in_graph = given_back


def mark_dynamic(t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None, max: int | None = None, **_: Any) -> None:
    """Nothing: every call takes the sizes that it is given."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Nothing: every call takes the sizes that it is given."""


def mark_static(t: Any, index: Any = None) -> None:
    """Nothing: every call takes the sizes that it is given."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Nothing: no address is kept."""
