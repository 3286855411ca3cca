"""Publishing a function: `@function` makes it `tritensor.<name>` and a method of Tensor, with its in-place and `out=` forms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tritensor.tensor.core import Tensor
from tritensor.tensor.inplace import overwrite, write_out, write_over

public: dict[str, Callable[..., Any]] = {}
Scalar = bool | int | float | complex


def function(
    f: Callable[..., Any] | None = None,
    *,
    method: bool = True,
    free: bool = True,
    inplace: bool | Callable[..., tuple[Any, ...]] = False,
    out: bool = False,
    names: Sequence[str] = (),
) -> Any:
    """Publish a function `f(x, ...)`: as `tritensor.<name>`, and as a method of Tensor.

    Args:
        method: attach to Tensor.
        free: publish as a function too (`x.cuda()` is a method only).
        inplace: also attach `x.<name>_(...)`, which writes the result over x. Where an op has the function's name it is asked to do so
            straight away; a function here makes that op's inputs of the arguments, which are the inputs otherwise.
        out: accept `out=`, a tensor that receives the result (resized, with a warning, when its shape differs).
        names: aliases; the function's own name is always one.
    """
    if f is None:
        return functools.partial(function, method=method, free=free, inplace=inplace, out=out, names=names)
    call = _with_out(f) if out else f
    if free:
        call.__module__ = "tritensor"  # where users and pickle find it
    for name in {f.__name__: None, **dict.fromkeys(names)}:
        if free:
            public[name] = call
        if method:
            setattr(Tensor, name, call)
        if inplace:
            setattr(Tensor, name + "_", _in_place(f, name + "_", inplace))
    return call


def _with_out(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def call(*args: Any, out: Tensor | None = None, **kwargs: Any) -> Any:
        if out is None:
            return f(*args, **kwargs)
        if not kwargs and isinstance(out, Tensor) and write_over(f.__name__, out, args, f.__name__):
            return out
        return write_out(out, f(*args, **kwargs), f.__name__)

    return call


def _in_place(f: Callable[..., Any], name: str, operands: Any) -> Callable[..., Any]:
    @functools.wraps(f)
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if operands is not True:
            given = operands(self, *args, **kwargs)
        else:
            given = (self, *args) if not kwargs else ()
        if write_over(f.__name__, self, given, name):
            return self
        return overwrite(self, f(self, *args, **kwargs), name)

    call.__name__ = call.__qualname__ = name
    return call
