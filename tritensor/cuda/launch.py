"""The one way a kernel is started: `launch(kernel, grid, *args, **constexprs)` on the runtime in use."""

from __future__ import annotations

from typing import Any

from tritensor.cuda.runtime import runtime


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, num_warps: int = 4, num_stages: int = 3, **constexprs: Any) -> None:
    """Run a `@triton.jit` kernel once per point of `grid` (one to three ints; a 0 among them launches nothing).

    `args` are the kernel's parameters in order, `constexprs` the rest by name (any parameter may be given by name). The kernel sees

    ========================  ==============================================================================
    given                     seen by the kernel
    ========================  ==============================================================================
    CudaArray                 pointer to its first element (shape and strides are separate arguments)
    bool                      int1
    int                       int32, or int64 / uint64 where the value does not fit
    float                     fp32: Triton's rule. A kernel that computes in float64 is given np.float64(value)
    np.float64, np.int64, ..  a scalar of exactly that type (fp64, i64, u32, ...), whatever its value
    None                      None (the parameter behaves as a constexpr: `if bias is not None`)
    tuple of these            a tuple, nested as given
    anything, for constexpr   the value itself: ints, strings, dtypes, tuples, @triton.jit functions
    ========================  ==============================================================================

    Pointers and ints divisible by 16 are compiled as such, so masks and strides keep wide accesses; the value 1 is not
    special (declare a constexpr where a kernel wants to know it).
    Raises LaunchError when the kernel does not compile or start, TypeError when arguments and parameters do not match.
    """
    if 0 in grid:
        return
    runtime().launch(kernel, grid, args, constexprs, num_warps, num_stages)
