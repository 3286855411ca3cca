"""Kernel launch: `launch(kernel, grid, *args, **constexprs)` starts a kernel on the runtime in use."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tritensor.cuda.compiler.arguments import LaunchCall
from tritensor.cuda.runtime.active import runtime
from tritensor.ground.errors import LaunchError
from tritensor.ground.thread_state import here

# The most programs along each dimension of a grid, on every GPU (technical specifications in the CUDA C++ Programming Guide).
_GRID = (2**31 - 1, 65535, 65535)
_WARPS = frozenset({1, 2, 4, 8, 16, 32})

# How kernels see objects of a class, told by the floor that has it: (value, kernel's name, parameter's name) -> what launch() takes.
Conversion = Callable[[Any, str, str], Any]
_conversions: dict[type, Conversion] = {}
_PLAIN = (int, float, bool, str, type(None))
_AS_THEY_ARE: set[type] = set(_PLAIN)  # classes whose objects kernels see as they are; grows as others are met


def register_conversion(cls: type, convert: Conversion) -> None:
    """Say how a kernel sees objects of a class (and of those derived from it) among its arguments."""
    _conversions[cls] = convert
    _AS_THEY_ARE.clear()
    _AS_THEY_ARE.update(_PLAIN)


def launch(
    kernel: Any, grid: tuple[int, ...], *args: Any, num_warps: int = 4, num_stages: int = 3,
    num_ctas: int = 1, launch_cooperative_grid: bool = False, launch_pdl: bool = False, **constexprs: Any,
) -> None:  # fmt: skip
    """Run a `@triton.jit` kernel once per point of `grid` (one to three ints; a 0 among them launches nothing; at most 2^31 - 1, 65535 and 65535).

    `args` are the kernel's parameters in order, `constexprs` the rest by name (any parameter may be given by name). The kernel sees

    ========================  ==============================================================================
    given                     seen by the kernel
    ========================  ==============================================================================
    Tensor or CudaArray       pointer to its first element (shape and strides are separate arguments)
    bool                      int1
    int                       int32, or int64 / uint64 where the value does not fit
    float                     fp32: Triton's rule. A kernel that computes in float64 is given np.float64(value)
    np.float64, np.int64, ..  a scalar of exactly that type (fp64, i64, u32, ...), whatever its value
    None                      None (the parameter behaves as a constexpr: `if bias is not None`)
    TensorDescriptor          tile loads and stores, `desc.load([i, j])` (see compiler/tensor_descriptor.py)
    tuple of these            a tuple, nested as given; of a named tuple the members by name, too (`args.x`)
    anything, for constexpr   the value itself: ints, strings, dtypes, tuples, @triton.jit functions
    ========================  ==============================================================================

    Pointers and Python ints divisible by 16 are compiled as such, so masks and strides keep wide accesses; the value 1 is not
    special (declare a constexpr where a kernel wants to know it). An int whose divisibility decides nothing is declared
    `@triton.jit(do_not_specialize=["name"])`, or given as a numpy scalar: it never causes a compilation.
    Args:
        num_ctas: blocks of a cluster (sm_90 and later). launch_cooperative_grid: all programs run at once, so that they may wait for
            one another. launch_pdl: the kernel may start while the one before it ends (it must contain the waiting instruction).
    Raises LaunchError when the kernel does not compile or start, TypeError when arguments and parameters do not match, DeviceError for a tensor
    that is on the CPU or on another GPU than the first.
    """
    options: tuple[tuple[str, Any], ...] = ()
    if num_ctas != 1 or launch_cooperative_grid or launch_pdl:
        options = (("num_ctas", num_ctas), ("launch_cooperative_grid", launch_cooperative_grid), ("launch_pdl", launch_pdl))
    start(LaunchCall(kernel, grid, args, constexprs, num_warps, num_stages, options))


def start(call: LaunchCall) -> None:
    """launch() with everything in its place. Raises what launch() does."""
    grid, num_stages = call.grid, call.num_stages
    if call.num_warps not in _WARPS:
        raise LaunchError(f"launch {call.kernel.__name__}: num_warps is {call.num_warps!r}; a block has 1, 2, 4, 8, 16 or 32 warps")
    if not isinstance(num_stages, int) or num_stages < 0:
        raise LaunchError(
            f"launch {call.kernel.__name__}: num_stages is {num_stages!r}; it is a whole number, the copies of a loop's tiles that are under way"
        )
    # exact classes: True and numpy's integers would go into the driver's structure as they are
    if grid.__class__ is not tuple or not 0 < len(grid) < 4 or not all([n.__class__ is int and n >= 0 for n in grid]):
        grid = call.grid = whole_grid(call.kernel, grid)
    if 0 in grid:
        return
    if grid[0] > _GRID[0] or max(grid[1:], default=0) > _GRID[1]:
        raise LaunchError(
            f"launch {call.kernel.__name__}: a grid of {grid}; a GPU takes at most {_GRID}: put the long dimension first, or join dimensions "
            "and take program_id(0) apart in the kernel"
        )
    bare(call)
    if here.recorder is not None:
        here.recorder.launched(call)
        if here.recorder.dry:
            return
    runtime().launch(call)


def whole_grid(kernel: Any, grid: Any) -> tuple[int, ...]:
    """A grid as a tuple of whole numbers, given as one, as a list, or as one number. Raises LaunchError, saying what to write."""
    sizes = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    if callable(grid):
        raise LaunchError(
            f"launch {kernel.__name__}: the grid is a function, and launch() takes numbers: give it (triton.cdiv(n, BLOCK),), or write "
            f"{kernel.__name__}[grid](...), which calls the function with the arguments by name"
        )
    try:
        whole = tuple([operator.index(n) for n in sizes])
    except TypeError:
        raise LaunchError(
            f"launch {kernel.__name__}: a grid of {sizes}; it is one to three whole numbers, the programs along each dimension: triton.cdiv(n, BLOCK)"
        ) from None
    if not 1 <= len(whole) <= 3 or min(whole) < 0:
        raise LaunchError(f"launch {kernel.__name__}: a grid of {whole}; it is one to three whole numbers, none below 0")
    return whole


def bare(call: LaunchCall) -> None:
    """Put the arguments of a launch into the form that runtimes take, each as its class is seen. A tuple that is compiled in holds no arrays."""
    for i, a in enumerate(call.args):
        if a.__class__ not in _AS_THEY_ARE and (found := _bare(a, call.kernel, i)) is not a:
            call.args = (*call.args[:i], found, *call.args[i + 1 :])
    constants = call.plan.constants
    for k, a in call.named.items():
        if (
            a.__class__ not in _AS_THEY_ARE
            and not (a.__class__ is tuple and k in constants)
            and (found := _bare(a, call.kernel, k)) is not a
        ):
            call.named = {**call.named, k: found}


def _bare(value: Any, kernel: Any, place: int | str) -> Any:
    """An argument as runtimes take it: what its class, or one that it is derived from, is seen as; `place` is its number or name."""
    cls = value.__class__
    if isinstance(value, tuple):
        items = [v if v.__class__ in _AS_THEY_ARE else _bare(v, kernel, place) for v in value]
        if all(map(operator.is_, items, value)):
            return value
        return cls(*items) if hasattr(value, "_fields") else tuple(items)
    convert = _conversions.get(cls)
    if convert is None:
        convert = next((_conversions[c] for c in cls.__mro__ if c in _conversions), None)
        if convert is None:
            _AS_THEY_ARE.add(cls)
            return value
    names = getattr(kernel, "arg_names", ())
    if not isinstance(place, str):
        place = names[place] if place < len(names) else f"argument {place}"
    return convert(value, kernel.__name__, place)
