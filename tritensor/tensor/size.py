"""Size: the shape of a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index as as_index
from typing import Any

from tritensor.dispatch.plans.door_code import note_atom
from tritensor.ground.call_site import qualified_name
from tritensor.ground.naming.type_names import named, own_name

_tuple_item = tuple.__getitem__
new_size = tuple.__new__  # new_size(Size, ints) looks at none of them


@named("torch")
class Size(tuple[int, ...]):
    """A shape: a tuple of ints that also answers numel(); its slices, sums and multiples are shapes too."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        # Refuses floats, which a tuple would keep; numpy's integers and 0-d tensors become ints.
        return tuple.__new__(cls, [as_index(n) for n in sizes])

    # PyTorch's slices and sums of a Size are Sizes, a tuple's would be plain tuples.
    def __getitem__(self, at: Any) -> Any:
        found = _tuple_item(self, at)
        return new_size(Size, found) if type(at) is slice else found

    def __add__(self, other: Any) -> Any:
        return Size((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        return new_size(Size, tuple(self) * times)

    __rmul__ = __mul__

    def numel(self) -> int:
        """How many elements a tensor of this size has."""
        out = 1
        for n in self:
            out *= n
        return out

    def __reduce__(self) -> Any:
        return own_name(Size), (tuple(self),)

    def __repr__(self) -> str:
        return qualified_name(f"Size({list(self)})")


note_atom(Size)  # of ints alone: equal ones mean the same
