"""Conversion of parameters: swap_tensors, and the two flags of PyTorch's that choose between new objects and the same."""

from __future__ import annotations

import weakref
from typing import Any

from tritensor.autograd.node import version_of
from tritensor.tensor.core import Tensor

_flags = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `module.to(...)`, `.half()`, `.cuda()` and their kin put new Parameters in the place of the old; without it the objects stay the same."""
    _flags["overwrite"] = bool(value)


def get_overwrite_module_params_on_conversion() -> bool:
    """What set_overwrite_module_params_on_conversion was given last; False before."""
    return _flags["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and `load_state_dict` give a parameter new memory by `utils.swap_tensors`: its object stays, what shared its memory does not.

    It comes before set_overwrite_module_params_on_conversion.
    """
    _flags["swap"] = bool(value)


def get_swap_module_params_on_conversion() -> bool:
    """What set_swap_module_params_on_conversion was given last; False before."""
    return _flags["swap"]


_SLOTS = tuple(s for s in Tensor.__slots__ if s not in ("__dict__", "__weakref__"))


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let two tensors exchange all that they are: values, type, device, class, attributes, gradient; each keeps its identity.

    A graph that saved one of them cannot go backward any more, and says so. Raises RuntimeError where that cannot be told apart from what others hold: a
    tensor that an op computed, a view or a tensor that has views, one that a weak reference points to, two of classes whose objects differ.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if not isinstance(t, Tensor):
            raise TypeError(f"swap_tensors: {name} is of type {type(t).__name__}; give two tensors")
        _refuse_held(name, t)
    one, other = _own_slots(type(t1)), _own_slots(type(t2))
    if one or other:
        raise RuntimeError(
            f"Cannot swap t1 and t2 if they have different slots: swap_tensors: {type(t1).__name__} has {one}, {type(t2).__name__} {other}; "
            "keep such values as plain attributes"
        )
    for t in (t1, t2):
        # a node that saved either of them then finds another version, and refuses to go backward with foreign values
        version_of(t).bump("swap_tensors")
    if type(t1) is not type(t2):
        t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    slots: Any = Tensor.__dict__  # by the slots themselves: an uninitialized parameter shows nobody its array
    for slot in _SLOTS:
        mine, theirs = slots[slot].__get__(t1), slots[slot].__get__(t2)
        slots[slot].__set__(t1, theirs)
        slots[slot].__set__(t2, mine)


def _own_slots(kind: type) -> list[str]:
    """Slots that a class of tensors has beside Tensor's."""
    return [s for base in kind.__mro__ if base not in Tensor.__mro__ for s in base.__dict__.get("__slots__", ())]


def _refuse_held(name: str, t: Tensor) -> None:
    if not t.is_leaf:
        raise RuntimeError(
            f"swap_tensors: {name} of shape {tuple(t.shape)} was computed by {t.grad_fn!r}, whose graph refers to it; give leaves, or detach() it"
        )
    if t.path is not None or (t.extra is not None and t.extra.views is not None and (t.extra.views.fresh or t.extra.views.stale)):
        what = "is a view" if t.path is not None else "has views that are alive"
        raise RuntimeError(
            f"swap_tensors: {name} of shape {tuple(t.shape)} {what}, which would show other memory than its base; clone() it"
        )
    if weakref.getweakrefs(t):
        raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it; swap_tensors: give up the weak reference first")
