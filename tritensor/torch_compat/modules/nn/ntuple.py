"""nn.modules.utils: one number, or one for each dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that makes n values of one, and a tuple of several."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """The values from the last to the first, each n times: padding as F.pad takes it."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take `prefix`, such as "module.", off the keys of a state_dict that begin with it; the dict itself changes, in its order."""
    for key in list(state_dict):  # the keys change under way
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)  # popped and put back, changed or not: the order stays
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in [k for k in metadata if k and (k.startswith(prefix) or k == prefix.rstrip("."))]:
            metadata[key.removeprefix(prefix) if key.startswith(prefix) else ""] = metadata.pop(key)
