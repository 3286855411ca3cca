"""PyTorch's samples in tritensor's types: tensors with their strides and offsets, types, functions of the test modules."""

from __future__ import annotations

import dataclasses
import dis
import functools
import types
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch

import tritensor as tt

RAW = {torch.bfloat16: (torch.int16, ml_dtypes.bfloat16)}  # types that numpy has not: as bits
TESTING = "torch.testing."


class Untranslatable(Exception):
    """A sample holds what tritensor has no type for, such as a sparse tensor."""


def fresh(t: torch.Tensor) -> torch.Tensor:
    """A leaf of the same values, strides and offset on a storage of its own."""
    if t.layout != torch.strided or t.is_quantized:
        return t.detach().clone().requires_grad_(t.requires_grad)
    plain = t.detach().resolve_conj().resolve_neg()
    copy = _storage(plain).as_strided(plain.shape, plain.stride(), plain.storage_offset())
    return copy.requires_grad_(t.requires_grad)


def _storage(t: torch.Tensor) -> torch.Tensor:
    """A copy of all elements of a tensor's memory."""
    return torch.as_strided(t, (t.untyped_storage().nbytes() // t.element_size(),), (1,), 0).clone()


def tensor(t: torch.Tensor) -> tt.Tensor:
    """Our tensor of the same values, type, strides and offset; nothing is shared."""
    if t.layout != torch.strided:
        raise Untranslatable(f"a tensor of layout {t.layout}")
    if t.is_quantized or not hasattr(tt, str(t.dtype).removeprefix("torch.")) or t.dtype == torch.complex32:
        raise Untranslatable(f"a tensor of type {t.dtype}")
    if str(t.device) != "cpu":
        raise Untranslatable(f"a tensor on {t.device}")
    plain = t.detach().resolve_conj().resolve_neg()
    flat = _storage(plain)
    bits, kind = RAW.get(t.dtype, (None, None))
    whole = tt.Tensor.wrap(flat.numpy() if bits is None else flat.view(bits).numpy().view(kind))
    made = whole.as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset())
    return made.requires_grad_() if t.requires_grad else made


def back(x: tt.Tensor) -> torch.Tensor:
    """The values of one of our tensors as PyTorch's."""
    array = np.array(x.detach().cpu()._array, order="C", copy=True)
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).reshape(array.shape)
    return torch.from_numpy(array).reshape(array.shape)


def copied(value: Any, memo: dict[int, torch.Tensor]) -> Any:
    """PyTorch's arguments again, every tensor a fresh leaf; what is one tensor stays one."""
    if isinstance(value, torch.Tensor):
        if id(value) not in memo:
            memo[id(value)] = fresh(value)
        return memo[id(value)]
    return _rebuilt(value, lambda v: copied(v, memo))


def translated(value: Any, memo: dict[int, tt.Tensor]) -> Any:
    """PyTorch's arguments as ours."""
    if isinstance(value, torch.Tensor):
        if id(value) not in memo:
            memo[id(value)] = tensor(value)
        return memo[id(value)]
    if isinstance(value, torch.Size):
        return tt.Size(value)
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        name = str(value).removeprefix("torch.")
        if not hasattr(tt, name):
            raise Untranslatable(str(value))
        return getattr(tt, name)
    if isinstance(value, torch.device):
        return tt.device(str(value))
    if isinstance(value, torch.Generator):
        return tt.Generator().manual_seed(value.initial_seed())
    if isinstance(value, torch.nn.Module):
        if not hasattr(tt.nn, type(value).__name__):
            raise Untranslatable(f"nn.{type(value).__name__}")
        return _module(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and type(value).__module__.startswith("torch."):
        ours = named(f"nn.{type(value).__name__}")
        if ours is None:
            raise Untranslatable(f"nn.{type(value).__name__}")
        return ours(**{f.name: translated(getattr(value, f.name), memo) for f in dataclasses.fields(value)})
    if callable(value) and not isinstance(value, type):
        return function(value)
    return _rebuilt(value, lambda v: translated(v, memo))


def _module(value: torch.nn.Module) -> Any:
    """A module of ours that holds the same."""
    kind = getattr(tt.nn, type(value).__name__)
    if not isinstance(value, torch.nn.TransformerEncoderLayer | torch.nn.TransformerDecoderLayer):
        return kind()
    attention, first = value.self_attn, value.linear1
    made = kind(
        attention.embed_dim, attention.num_heads, first.out_features, value.dropout.p, translated(value.activation, {}), value.norm1.eps,
        attention.batch_first, value.norm_first, first.bias is not None, dtype=translated(first.weight.dtype, {}),
    )  # fmt: skip
    made.load_state_dict({name: translated(x, {}) for name, x in value.state_dict().items()})
    return made.train(value.training)


def _rebuilt(value: Any, one: Callable[[Any], Any]) -> Any:
    """A container of the same kind with `one` of every entry; anything else as it is."""
    if isinstance(value, slice):
        return slice(one(value.start), one(value.stop), one(value.step))
    if isinstance(value, dict):
        return {k: one(v) for k, v in value.items()}
    if isinstance(value, tuple) and type(value) is not tuple and not isinstance(value, torch.Size):
        return tuple(one(v) for v in value) if hasattr(type(value), "n_fields") else type(value)(*map(one, value))
    if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
        return type(value)(one(v) for v in value)
    return value


def named(path: str) -> Any:
    """What tritensor has under a dotted name, or None, as well where a placeholder stands that raises when it is called."""
    found: Any = tt
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return None if ": not in tritensor: " in str(getattr(found, "__doc__", "")) else found


def _set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The test modules' wrapper_set_seed."""
    tt.manual_seed(42)
    return op(*args, **kwargs)


HELPERS = {"wrapper_set_seed": _set_seed}


def function(f: Any) -> Any:
    """A function of PyTorch's test modules over tritensor: the same code, its globals and captured values ours; a public one by its name."""
    if isinstance(f, functools.partial):
        return functools.partial(
            function(f.func), *(translated(a, {}) for a in f.args), **{k: translated(v, {}) for k, v in f.keywords.items()}
        )
    module = getattr(f, "__module__", None) or ""
    if isinstance(f, types.FunctionType) and module.startswith(TESTING):
        return HELPERS.get(f.__name__) or _moved(f)
    if not module.startswith("torch"):
        return f
    name = getattr(f, "__qualname__", getattr(f, "__name__", ""))
    if not name:  # an object that can be called, such as a sample's own entry of the database
        raise Untranslatable(f"{module}'s {type(f).__name__}")
    for home in (module.removeprefix("torch").lstrip("."), "nn.functional", ""):
        found = named(f"{home}.{name}".lstrip("."))
        if found is not None:
            return found
    raise Untranslatable(f"{module}.{name}")


_moving: dict[int, Any] = {}


def _moved(f: types.FunctionType) -> Any:
    """A Python function with `torch` of its globals and cells replaced."""
    wanted = _names(f.__code__)
    space = {k: v for k, v in f.__globals__.items() if k not in wanted}
    made = types.FunctionType(
        f.__code__, space, f.__name__, None, None if f.__closure__ is None else tuple(types.CellType() for _ in f.__closure__)
    )
    if id(f) in _moving:  # a function that calls itself
        return _moving[id(f)]
    _moving[id(f)] = made
    try:
        for name in wanted & f.__globals__.keys():
            space[name] = _captured(f.__globals__[name])
        for empty, cell in zip(made.__closure__ or (), f.__closure__ or (), strict=True):
            empty.cell_contents = _captured(cell.cell_contents)
        made.__defaults__ = None if f.__defaults__ is None else tuple(_captured(v) for v in f.__defaults__)
        made.__kwdefaults__ = None if f.__kwdefaults__ is None else {k: _captured(v) for k, v in f.__kwdefaults__.items()}  # type: ignore[assignment]
    finally:
        del _moving[id(f)]
    return made


def _names(code: types.CodeType) -> set[str]:
    """The names that a function and the functions inside it ask for."""
    inner = [_names(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*inner)


def _captured(value: Any) -> Any:
    if isinstance(value, types.ModuleType):
        if value.__name__.split(".")[0] != "torch":
            return value
        return tt if value is torch else named(value.__name__.removeprefix("torch."))
    try:
        return translated(value, {})
    except Untranslatable:
        return value


def chains(code: types.CodeType) -> set[str]:
    """The dotted names below `torch` that a function and the functions inside it ask for."""
    found, chain = set(), None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            if chain:
                found.add(chain)
            chain = "" if step.argval == "torch" else None
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain is not None:
            chain = f"{chain}.{step.argval}".lstrip(".")
        elif step.opname not in ("PRECALL", "NOP", "CACHE"):
            if chain:
                found.add(chain)
            chain = None
    return found.union(*(chains(c) for c in code.co_consts if isinstance(c, types.CodeType)))
