"""An expression's answer in one library as plain data: values, type, shape, strides, gradients, or the classes of the error."""

from __future__ import annotations

import math
import warnings
from typing import Any

ERRORS = (
    IndexError,
    KeyError,
    NotImplementedError,
    OverflowError,
    TypeError,
    ValueError,
    RuntimeError,
    AttributeError,
)  # the more special ones first
CLOSE = {"float64": 1e-9, "complex128": 1e-9, "float16": 2e-3, "bfloat16": 2e-2}  # relative; of other types 2e-6
_VALUES = [1.3, -0.7, 2.1, 0.4, -1.9, 0.8, 3.2, -2.6, 1.1, 0.3, -0.2, 1.7, -1.4, 0.9, 2.8, -3.1, 0.6, -0.5]
_SPECIAL = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-300, 0.5, -2.5]


def names(T: Any, on: str = "cpu") -> dict[str, Any]:
    """What the expressions are about, fresh, on a device."""

    def floats(values: list[float], *shape: int) -> Any:
        return T.tensor(values, dtype=T.float64, device=on).reshape(shape).detach().requires_grad_()

    T.manual_seed(0)
    parts = T.tensor(_VALUES[:12], dtype=T.float64).reshape(2, 3, 2)
    image = [_VALUES[(7 * n) % 18] + 0.01 * n for n in range(50)]
    return {
        "T": T, "F": T.nn.functional, "x": floats(_VALUES[:6], 2, 3), "y": floats([1.1, 0.7, 2.9, 3.3, 0.2, 1.6], 2, 3), "v": floats(_VALUES[6:9], 3),
        "m": floats(_VALUES[9:], 3, 3), "b": floats(_VALUES, 2, 3, 3), "p": floats(image, 1, 2, 5, 5), "w": floats(image[4:40], 3, 2, 3, 2),
        "s": T.tensor(_SPECIAL, dtype=T.float64, device=on), "i": T.tensor([[3, -4, 0], [7, -1, 5]], device=on),
        "j": T.tensor([[2, 3, 1], [4, 1, 2]], device=on), "n": T.tensor([2, 0, 1], device=on),
        "k": T.tensor([[True, False, True], [False, True, True]], device=on), "u": T.tensor([[250, 3, 0], [1, 7, 255]], dtype=T.uint8, device=on),
        "e": T.zeros(0, dtype=T.float64, device=on), "o": T.tensor(1.5, dtype=T.float64, device=on), "f": T.tensor([1.5, -2.0], device=on), "on": on, "written": written,
        "z": T.view_as_complex(parts).detach().requires_grad_(),
    }  # fmt: skip


def written(t: Any, index: Any, value: Any) -> Any:
    """A copy of a tensor after `copy[index] = value`."""
    copy = t.clone()
    copy[index] = value
    return copy


def answer(T: Any, expression: str, on: str = "cpu") -> dict[str, Any]:
    """What a library answers: {"result", "gradients"}, or {"error"}."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = shown(T, eval(expression, names(T, on)))
        except ERRORS as error:
            return {"error": [c.__name__ for c in ERRORS if isinstance(error, c)]}
        try:
            return {"result": result, "gradients": _gradients(T, expression, names(T, on))}
        except ERRORS as error:
            return {"result": result, "gradients": type(error).__name__}


def _gradients(T: Any, expression: str, given: dict[str, Any]) -> dict[str, Any]:
    """The gradient of a weighted sum of the tracked results by every name that it depends on."""
    found = eval(expression, given)
    several = found if isinstance(found, tuple | list) else [found]
    results = [r for r in several if isinstance(r, T.Tensor) and r.requires_grad and not r.is_leaf and r.numel()]
    if not results:
        return {}
    leaves = {n: t for n, t in given.items() if isinstance(t, T.Tensor) and t.requires_grad}
    results = [T.view_as_real(r) if r.is_complex() else r for r in results]
    parts = [(r.double().cpu() * (1 + T.arange(r.numel(), dtype=T.float64)).reshape(r.shape)).sum() for r in results]
    gradients = T.autograd.grad(parts, list(leaves.values()), allow_unused=True)
    return {n: shown(T, g)["values"] for n, g in zip(leaves, gradients, strict=True) if g is not None}


def shown(T: Any, value: Any) -> Any:
    """A result as JSON has it. The stride of a dimension with less than two elements says nothing: it is left out."""
    if isinstance(value, T.Tensor):
        v = value.detach()
        host = v.double() if v.dtype.is_floating_point else v
        strides = [step if n > 1 else 0 for n, step in zip(v.shape, v.stride(), strict=True)] if v.numel() else []
        values = [_plain(x) for x in host.reshape(-1).tolist()]
        return {
            "type": str(v.dtype).split(".")[-1],
            "shape": list(v.shape),
            "stride": strides,
            "values": values,
            "tracked": value.requires_grad,
        }
    if isinstance(value, tuple | list):
        return [shown(T, v) for v in value]
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    return value if isinstance(value, bool | int | str | None) else str(value).replace("tritensor", "torch")


def differs(theirs: Any, ours: Any) -> str:
    """What is otherwise in the second answer; "" where nothing is. A gradient that PyTorch does not have is not compared, one that is all zeros may be none."""
    if "error" in theirs or "error" in ours:
        if "error" not in theirs or "error" not in ours:
            return f"PyTorch: {theirs}, here: {ours}"
        return (
            "" if theirs["error"][0] in ours["error"] else f"PyTorch raises {theirs['error'][0]}, here it is {' and '.join(ours['error'])}"
        )
    return _unlike(theirs["result"], ours["result"]) or _other_gradients(
        theirs["gradients"], ours["gradients"], 2e-6 if "float32" in str(theirs["result"]) else 1e-7
    )


def _other_gradients(theirs: Any, ours: Any, relative: float) -> str:
    if isinstance(theirs, str):
        return ""
    if isinstance(ours, str):
        return f"the gradient raises {ours}"
    for name in {**theirs, **ours}:
        one, other = theirs.get(name), ours.get(name)
        none = ["0.0"] * len(one or other)
        if not _near(one or none, other or none, relative):
            return f"gradient by {name}: {one} in PyTorch, {other} here"
    return ""


def _unlike(theirs: Any, ours: Any) -> str:
    if isinstance(theirs, dict):
        if not isinstance(ours, dict):
            return f"{theirs} in PyTorch, {ours} here"
        for key in ("type", "shape", "stride", "tracked"):
            if theirs[key] != ours[key]:
                return f"{key} {theirs[key]} in PyTorch, {ours[key]} here"
        near = _near(theirs["values"], ours["values"], CLOSE.get(theirs["type"], 2e-6))
        return "" if near else f"{theirs['values']} in PyTorch, {ours['values']} here"
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(theirs) != len(ours):
            return f"{theirs} in PyTorch, {ours} here"
        return next((found for a, b in zip(theirs, ours, strict=True) if (found := _unlike(a, b))), "")
    return "" if _near([theirs], [ours], 1e-9) else f"{theirs} in PyTorch, {ours} here"


def _near(theirs: list[Any], ours: list[Any], relative: float) -> bool:
    if len(theirs) != len(ours):
        return False
    for a, b in zip(theirs, ours, strict=True):
        if a == b and type(a) is type(b):
            continue
        if not isinstance(a, str) or not isinstance(b, str) or "torch" in a:
            return False
        x, y = complex(a), complex(b)
        if not (abs(x - y) <= relative * max(abs(x), 1e-3) or (math.isnan(abs(x)) and math.isnan(abs(y)))):
            return False
    return True
