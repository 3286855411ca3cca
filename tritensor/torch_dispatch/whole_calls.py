"""Whole calls: public functions that are one op in PyTorch and several here, or writes in place, told as that one op where no gradient is recorded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tritensor.autograd.modes import state
from tritensor.autograd.node import version_of
from tritensor.ground.call_site import wrapper
from tritensor.tensor.core import Tensor
from tritensor.tensor.overriding import protocol
from tritensor.torch_dispatch.asking import ask, below_autograd, find_dispatching, setting, tensors_of
from tritensor.torch_dispatch.instances import is_instance
from tritensor.torch_dispatch.overloads import Overload, aten
from tritensor.torch_dispatch.translations import BINARY, UNARY

_WRAPPED_NUMBERS = ("add", "sub", "mul", "div")  # whose overload for tensors takes numbers, too


def _second(numbers: str = "Scalar", tensors: str = "Tensor") -> Callable[..., str]:
    """The overload by the second argument."""
    return lambda x=None, other=None, *args, **kwargs: tensors if isinstance(other, Tensor) else numbers


def _value(x: Any = None, mask: Any = None, value: Any = None, *args: Any, **kwargs: Any) -> str:
    return "Tensor" if isinstance(value, Tensor) else "Scalar"


def _index_value(x: Any = None, dim: Any = None, index: Any = None, value: Any = None) -> str:
    return "int_Tensor" if isinstance(value, Tensor) else "int_Scalar"


def _weight(x: Any = None, end: Any = None, weight: Any = None) -> str:
    return "Tensor" if isinstance(weight, Tensor) else "Scalar"


def _squeeze(x: Any = None, dim: Any = None) -> str:
    return "default" if dim is None else "dim" if isinstance(dim, int) else "dims"


def _split(x: Any = None, split_size: Any = None, dim: int = 0) -> str:
    return "Tensor" if isinstance(split_size, int) else "sizes"


def _extreme(x: Any = None, dim: Any = None, *args: Any, **kwargs: Any) -> str:
    return "default" if dim is None and not args else "other" if isinstance(dim, Tensor) else "dim"


def _sort(x: Any = None, *args: Any, stable: bool | None = None, **kwargs: Any) -> str:
    return "default" if stable is None else "stable"


def _arange(start: Any = 0, end: Any = None, step: Any = None, **kwargs: Any) -> str:
    return "default" if end is None else "start" if step is None else "start_step"


# {the public function: its overload, or what tells it by the arguments}
OVERLOADS: dict[str, str | Callable[..., str]] = {
    "std": "correction", "index_select": "default", "masked_fill": _value, "masked_fill_": _value, "masked_select": "default", "max": _extreme,
    "min": _extreme, "unsqueeze": "default", "squeeze": _squeeze, "split": _split, "addmm": "default", "addmv": "default", "addbmm": "default",
    "baddbmm": "default", "addcmul": "default", "addcdiv": "default", "addr": "default", "logsumexp": "default", "repeat": "default", "index_add": "default",
    "index_add_": "default", "index_copy": "default", "index_copy_": "default", "index_fill": _index_value, "index_fill_": _index_value, "nonzero": "default",
    "median": "default", "trace": "default", "dist": "default", "fill_": _second(), "zero_": "default", "copy_": "default", "bernoulli_": "float",
    "normal_": "default", "uniform_": "default", "exponential_": "default", "random_": "default", "scatter_add_": "default", "unsqueeze_": "default",
    "squeeze_": _squeeze, "t_": "default", "transpose_": "default", "clamp_": "default", "index_put_": "default", "addmm_": "default", "addcmul_": "default",
    "addcdiv_": "default", "lerp_": _second("Scalar", "Scalar"), "zeros": "default", "ones": "default", "rand": "default", "randn": "default",
    "randint": "default", "randperm": "default", "empty": "memory_format", "arange": _arange, "full": "default", "zeros_like": "default",
    "ones_like": "default", "empty_like": "default", "full_like": "default", "rand_like": "default", "randn_like": "default", "new_zeros": "default",
    "new_ones": "default", "new_empty": "default", "new_full": "default", "new_empty_strided": "default", "sort": _sort, "select": "int", "roll": "default",
    "cumsum": "default", "unbind": "int", "equal": "default", "t": "default", "transpose": "int", "lerp": _weight,
}  # fmt: skip
OVERLOADS["index"] = "Tensor"
OVERLOADS |= {f"{name}_": "default" for op, name in UNARY.items() if op == name}
OVERLOADS |= {f"{name}_": _second(numbers or "default", "Tensor") for name, numbers in BINARY.items() if numbers}
OVERLOADS |= {f"{name}_": "Tensor" for name in _WRAPPED_NUMBERS} | {"pow_": _second("Scalar", "Tensor")}
_CREATING = frozenset(("zeros", "ones", "rand", "randn", "empty", "new_zeros", "new_ones", "new_empty"))  # whose sizes may stand one by one
_LEADING = {"new_zeros": 1, "new_ones": 1, "new_empty": 1}


def _as_indices(index: Any) -> list[Any] | None:
    """The tensors of an index that is made of tensors and whole slices alone, as aten.index takes them; None for any other."""
    parts = index if isinstance(index, tuple) else (index,)
    # the type first: an array of numpy's compares element by element
    if not any([isinstance(p, Tensor) for p in parts]) or not all(
        [isinstance(p, Tensor) or (type(p) is slice and p == slice(None)) for p in parts]
    ):
        return None
    return [p if isinstance(p, Tensor) else None for p in parts]


@wrapper
def tell(shown: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What handlers make of a call of a public function that is told as one op; NotImplemented where it is not."""
    space, _, name = (shown or "").rpartition(".")
    if name == "__getitem__":
        name, args = "index", (args[0], _as_indices(args[1]))
    if name not in OVERLOADS or setting.off or space not in ("torch", "torch.Tensor"):
        return NotImplemented
    given = tensors_of((args, kwargs))
    if not protocol.setting.lower_modes and not find_dispatching(given):
        return NotImplemented
    if name == "index" and args[1] is None:
        return NotImplemented
    if (state.enabled and any([x._tracked for x in given])) or kwargs.get("out") is not None:
        return NotImplemented
    chosen = OVERLOADS[name]
    if name in _CREATING:
        lead = _LEADING.get(name, 0)
        if len(args) > lead and isinstance(args[lead], int):
            args = (*args[:lead], list(args[lead:]))
    if not isinstance(chosen, str):
        try:
            inspect.signature(chosen).bind(*args, **kwargs)
        except TypeError:
            return NotImplemented  # written in an older way, which the function itself knows
        chosen = chosen(*args, **kwargs)
    func: Overload = getattr(getattr(aten, name), chosen)
    with below_autograd():
        result = ask(func, args, kwargs)
    if name.endswith("_") and is_instance(args[0]):
        version_of(args[0]).bump(name)  # a handler writes to what is inside
    return result


protocol.tell = tell
