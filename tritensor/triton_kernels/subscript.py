"""`kernel[grid](x, y, n, BLOCK=1024)`: Triton's own way of starting a kernel, with our tensors among the arguments.

What is compiled is what Triton compiles for such a call: pointers and integers that divide by 16 are marked so, the integer 1 is a
constant, `num_warps=`, `num_stages=`, `maxnreg=` and all other options of its compiler are taken by name. The launch itself is
`tritensor.cuda.launch`: it is recorded and replayed inside the corners of an op, kept by a CUDA graph, found in packs, and on the
emulated device run under the sanitizer. A call with tensors of another library goes to Triton as before.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

from tritensor.cuda.compiler.arguments import Constant, LaunchCall, bind, is_array
from tritensor.cuda.launch import start, whole_grid
from tritensor.ground.thread_state import here, run_waiting
from tritensor.ops.array import CudaArray
from tritensor.tensor.core import Tensor
from tritensor.triton_kernels import arguments, launch_hooks
from tritensor.triton_kernels.compiled import Launched, warm_up
from tritensor.triton_kernels.driver import step_aside
from tritensor.triton_kernels.ownership import PLAIN, is_tritensor_call

# Unlike the kernels of this library (see ARITHMETIC in compiler/arguments.py) these are compiled with Triton's own setting.
_AS_TRITON: tuple[tuple[str, Any], ...] = (("enable_reflect_ftz", True),)
_ABSENT = {"num_ctas": 1, "launch_cooperative_grid": False, "launch_pdl": False, "maxnreg": None, "ir_override": None}  # as if not given


def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
    """What `kernel[grid](*args, **named)` does, and `kernel.warmup(*args, grid=grid, **named)`.

    Returns what was compiled (registers, code, ...; see compiled.py), None on the emulated device, as Triton's interpreter does.
    Raises TypeError for arguments that do not match the parameters, DeviceError for tensors that are not on one GPU, LaunchError for a grid that no
    GPU takes and for a kernel that does not compile.
    """
    if here.segment is not None:
        run_waiting()  # which of the arguments the kernel writes nobody knows
    call = LaunchCall(kernel, grid, args, named, options=_AS_TRITON)
    plan = call.plan
    constexpr, ones, place = plan.constexpr, plan.ones, plan.place
    options: dict[str, Any] = {}
    # Triton takes options and parameters by name in one call; a parameter called num_warps is the kernel's own
    for k in [k for k in named if k not in place]:
        options[k] = named.pop(k)
    if kernel.pre_run_hooks:
        for hook in kernel.pre_run_hooks:
            hook(*args, **named, **options)
    if options:
        call.num_warps, call.num_stages = options.pop("num_warps", call.num_warps), options.pop("num_stages", call.num_stages)
        if options:
            call.options = _to_options(call, options)
    if warmup:
        call.args = args = arguments.replace_mocks(args)
        call.named = named = {k: arguments.replace_mocks((v,))[0] for k, v in named.items()}
    elif grid.__class__ is not tuple:  # what a tuple holds, start() looks at
        call.grid = grid = _to_grid(call)
    if len(args) > len(constexpr):
        bind(call)  # which says so
    given = call.by_name() if launch_hooks.are_set() else None
    call.args = tuple(
        [
            a._array if a.__class__ is Tensor and not c and a._array.__class__ is CudaArray
            else (_ONE if a == 1 and one else a) if a.__class__ is int
            else a if a.__class__ in PLAIN
            else _as_launch_argument(kernel, name, a, c)
            for a, one, c, name in zip(args, ones, constexpr, plan.names, strict=False)
        ]
    )  # fmt: skip
    for k, a in named.items():
        if a.__class__ not in PLAIN:
            named[k] = _as_launch_argument(kernel, k, a, constexpr[place[k]])
        elif a.__class__ is int and a == 1 and ones[place[k]]:
            named[k] = _ONE
    if warmup:
        return warm_up(call)
    if plan.compiled and kernel.used_global_vals:
        _refuse_changed_globals(kernel, kernel.used_global_vals)
    if 0 in grid:
        _warn_of_empty_grid(call)
        return None
    launched = Launched(call)
    if given is None:
        start(call)
    else:
        with launch_hooks.around(call, given, launched):
            start(call)
    return launched if plan.compiled else None


# Arguments
_ONE = Constant(1)


def _as_launch_argument(kernel: Any, name: str, value: Any, constexpr: bool) -> Any:
    """An argument as launch() takes it: a Constant where Triton compiles it in although its parameter is no constexpr, of a tl.constexpr what it holds."""
    if constexpr and (isinstance(value, Tensor) or is_array(value)):
        raise TypeError(f"launch {kernel.__name__}: {name} is a constexpr, compiled into the kernel, and was given a tensor; give x.item()")
    if arguments.is_constexpr(value):
        value = value.value
        return value if constexpr else Constant(value)
    if constexpr and value.__class__.__hash__ is None:
        raise TypeError(
            f"launch {kernel.__name__}: {name} is a constexpr, which a compiled kernel is known by, and was given a {type(value).__name__}, which has no "
            "hash; give a tuple"
        )
    if not constexpr and arguments.is_function(value):
        return Constant(value)
    return value


@cache
def _known_options() -> frozenset[str]:
    """What Triton's compiler for NVIDIA's GPUs can be told."""
    from triton.backends.nvidia.compiler import CUDAOptions

    return frozenset(CUDAOptions.__dataclass_fields__)


def _to_options(call: LaunchCall, given: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The options of a launch beside warps and stages. Raises TypeError for what is neither an option nor a parameter."""
    known, names = _known_options(), call.plan.names
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, [*names, *known], 1)
            raise TypeError(
                f"launch {call.kernel.__name__}: {name} is neither a parameter nor an option of Triton's compiler"
                + (f"; did you mean {near[0]}?" if near else ".")
                + f" The kernel takes ({', '.join(names)})"
            )
    wanted = {k: v for k, v in given.items() if k not in _ABSENT or v != _ABSENT[k]}
    return tuple(sorted({**dict(_AS_TRITON), **{k: _hashable(v) for k, v in wanted.items()}}.items()))


def _hashable(option: Any) -> Any:
    """An option as a launch is known by it: `extern_libs={...}` as pairs, of which the compiler makes the dict again."""
    if isinstance(option, dict):
        return tuple(sorted(option.items()))
    return tuple(option) if isinstance(option, list) else option


# The grid
def _to_grid(call: LaunchCall) -> tuple[int, ...]:
    """The grid of a call as a tuple of whole numbers: given as one, as one number, or as a function of the arguments by name."""
    kernel, grid = call.kernel, call.grid
    if callable(grid):
        by_name = call.by_name()
        try:
            grid = grid(by_name)
        except KeyError as error:
            if not error.args or error.args[0] in by_name:
                raise
            raise KeyError(
                f"launch {kernel.__name__}: the grid asks for {error.args[0]!r}, which is none of the kernel's arguments: {', '.join(by_name)}"
            ) from error
    return whole_grid(kernel, grid)


def _warn_of_empty_grid(call: LaunchCall) -> None:
    """Warn of a grid that holds no program although no tensor is empty: nothing is launched, as in Triton, and outputs stay as they were."""
    arrays = [a for a in (*call.args, *call.named.values()) if isinstance(a, Tensor) or is_array(a)]
    # of empty tensors an empty grid is right
    if arrays and all(0 not in x.shape for x in arrays):
        warnings.warn(
            f"launch {call.kernel.__name__}: a grid of {call.grid} holds no program, so nothing is launched, and no tensor is empty; "
            f"sizes that are rounded down give 0: triton.cdiv(n, BLOCK) rounds up",
            stacklevel=5,  # above Triton's kernel[grid]
        )


def _refuse_changed_globals(kernel: Any, used: dict[Any, Any]) -> None:
    """Raise when a global constant that was compiled into a kernel has another value now."""
    missing = object()
    for (name, _), (value, names) in used.items():
        now = names.get(name, missing)
        # identity first: an array's != is no answer
        if now is not value and now != value:
            raise RuntimeError(
                f"launch {kernel.__name__}: the global {name} was {value} when the kernel was compiled and is {now} now; pass it as a tl.constexpr parameter"
            )


# Triton's classes
def _route_run(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Triton's `run` of a class of kernels, ours where the call is ours."""

    def routed(self: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        if is_tritensor_call(self, args, named):
            return run(self, *args, grid=grid, warmup=warmup, **named)
        # another library's tensors want its own driver, if it has a GPU
        step_aside()
        return theirs(self, *args, grid=grid, warmup=warmup, **named)

    routed.__wrapped__ = theirs  # type: ignore[attr-defined]
    return routed


def install() -> None:
    """Let compiled kernels take our tensors. Called once, when Triton has been imported."""
    from triton.runtime.jit import JITFunction

    JITFunction.run = _route_run(JITFunction.run)
    arguments.install()


def install_interpreted() -> None:
    """The same of interpreted ones, when Triton's interpreter has been imported."""
    from triton.runtime.interpreter import InterpretedFunction

    InterpretedFunction.run = _route_run(InterpretedFunction.run)
    # an interpreted kernel has none, and run() asks every kernel
    if not hasattr(InterpretedFunction, "pre_run_hooks"):
        InterpretedFunction.pre_run_hooks = ()
