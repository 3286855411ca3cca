"""torch._foreach_add_ and its kin: one function over lists of tensors, as optimisers and averages of weights are written; one tensor after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor.tensor.core import Tensor

ALONE = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg",
    "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
WITH_OTHERS = ("add", "addcdiv", "addcmul", "clamp_max", "clamp_min", "div", "lerp", "maximum", "minimum", "mul", "pow", "sub")
# The larger of x and y is x clamped from below by y, which takes numbers, too.
BOUNDS = {"clamp_max": "max", "clamp_min": "min", "maximum": "min", "minimum": "max"}
NAMES = tuple(f"_foreach_{name}{way}" for name in (*ALONE, *WITH_OTHERS) for way in ("", "_")) + tuple(
    f"_foreach_{name}" for name in ("clone", "copy_", "max", "norm", "zero_")
)


def _each(name: str, given: Any, count: int) -> Sequence[Any]:
    """What each tensor meets: its own of a list, or one for all."""
    if not isinstance(given, list | tuple):
        return (given,) * count
    if len(given) != count:
        raise RuntimeError(f"{name}: lists of {count} and {len(given)}; give as many of each")
    return given


def _call(plain: str, x: Any, others: tuple[Any, ...], more: dict[str, Any]) -> Tensor:
    way = "_" if plain.endswith("_") else ""
    bound = BOUNDS.get(plain.removesuffix("_"))
    if bound is not None:
        return getattr(x, "clamp" + way)(**{bound: others[0]})  # type: ignore[no-any-return]
    if plain.startswith("addc") and len(others) == 3:  # _foreach_addcmul(a, b, c, value): the method knows the factor by name alone
        *others, more["value"] = others  # type: ignore[assignment]
    if not isinstance(x, Tensor):  # a number to the power of tensors
        return x ** others[0]  # type: ignore[no-any-return]
    return getattr(x, plain)(*others, **more)  # type: ignore[no-any-return]


def _made(name: str) -> Callable[..., Any]:
    plain = name.removeprefix("_foreach_")

    def over(self: Any, *others: Any, **more: Any) -> Any:
        # _foreach_pow(2.0, tensors): the list stands second.
        first = self if isinstance(self, list | tuple) else others[0] if others else self
        if not isinstance(first, list | tuple) or not first:
            raise RuntimeError(f"{name}: {type(first).__name__} of no tensors; give a list of at least one tensor")
        count = len(first)
        lists = [_each(name, given, count) for given in (self, *others)]
        named = {key: _each(name, given, count) for key, given in more.items()}
        found = [_call(plain, x, tuple(rest), {k: v[i] for k, v in named.items()}) for i, (x, *rest) in enumerate(zip(*lists, strict=True))]
        return self if plain.endswith("_") else tuple(found)

    over.__name__ = over.__qualname__ = name
    over.__doc__ = f"Tensor.{plain} of each tensor of a list, with one of each list beside it, or a number for all."
    return over


globals().update((name, _made(name)) for name in NAMES)  # a hundred functions that differ by a name
