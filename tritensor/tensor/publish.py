"""Publishing a function: `@function` makes it `tritensor.<name>` and a method of Tensor, with its in-place and `out=` forms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tritensor.tensor.core import Tensor
from tritensor.tensor.inplace import overwrite, write_out

public: dict[str, Callable[..., Any]] = {}
Scalar = bool | int | float | complex


def function(
    f: Callable[..., Any] | None = None,
    *,
    method: bool = True,
    free: bool = True,
    inplace: bool = False,
    out: bool = False,
    names: Sequence[str] = (),
) -> Any:
    """Publish a function `f(x, ...)`: as `tritensor.<name>`, and as a method of Tensor.

    Args:
        method: attach to Tensor.
        free: publish as a function too (`x.cuda()` is a method only).
        inplace: also attach `x.<name>_(...)`, which writes the result over x.
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
            setattr(Tensor, name + "_", _in_place(f, name + "_"))
    return call


def _with_out(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def call(*args: Any, out: Tensor | None = None, **kwargs: Any) -> Any:
        if out is None:
            return f(*args, **kwargs)
        return write_out(out, f(*args, **kwargs), f.__name__)

    return call


def _in_place(f: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(f)
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return overwrite(self, f(self, *args, **kwargs), name)

    call.__name__ = call.__qualname__ = name
    return call
