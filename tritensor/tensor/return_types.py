"""Tuples of several results under the name of the function that returns them, printed a part to a line, as PyTorch's return_types."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from tritensor.ground.call_site import qualified_name

NamedTupleType = TypeVar("NamedTupleType", bound=tuple[Any, ...])


def _repr_fields(x: Any) -> str:
    kind = type(x)
    parts = ",\n".join(f"{name}={part!r}" for name, part in zip(x._fields, x, strict=True))
    return f"{qualified_name('return_types.' + kind.__name__)}(\n{parts})"


@functools.cache
# Cached so that every call of a function returns instances of one class, which pickle finds by name.
def return_type(name: str, kind: type[NamedTupleType]) -> type[NamedTupleType]:
    """`kind`, a named tuple, as what the function `name` returns: tritensor.return_types.max."""
    return type(name, (kind,), {"__slots__": (), "__module__": "tritensor.return_types", "__doc__": kind.__doc__, "__repr__": _repr_fields})
