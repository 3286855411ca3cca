"""FreshTensor: what a known function hands out: a tensor with a shape, and without an array until somebody asks for one."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tritensor.autograd.node import version_of
from tritensor.ground import dtypes
from tritensor.lazy_evaluation.known.records import Hand
from tritensor.tensor.core import Tensor
from tritensor.tensor.rare_attributes import ensure_extra, live_views


class FreshTensor(Tensor):
    """A tensor of a known path. Who asks for its array gets a lazy one; who asks for anything else that a path does not tell, its node or its views, has
    what was passed over called after all, and it is an ordinary tensor then."""

    __slots__ = ()
    becomes: type[Tensor] = Tensor  # when its array is there

    def __getattr__(self, name: str) -> Any:
        if type(self) is not FreshTensor:  # a property has left the path, and raised
            return object.__getattribute__(self, name)
        if name == "_array":
            return self._layout.cursor.give_array(self)
        self._layout.cursor.leave()  # whatever is asked for
        if type(self) is not FreshTensor:
            return getattr(self, name)
        raise AttributeError(f"'{Tensor.__name__}' object has no attribute {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        if type(self) is FreshTensor:  # whoever changes it keeps it, or would see it again in the next run
            self._layout.cursor.leave()
        object.__setattr__(self, name, value)

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return dtypes.of(self._layout.dtype)

    @property
    def device(self) -> Any:
        """Where the elements lie."""
        return self._layout.device

    @property
    def ndim(self) -> int:  # type: ignore[override]
        """How many dimensions there are."""
        return len(self._layout.shape)

    def dim(self) -> int:
        """How many dimensions there are."""
        return len(self._layout.shape)

    @property
    def is_cuda(self) -> bool:
        """Whether the elements lie on a GPU."""
        return bool(self._layout.device.type == "cuda")

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._layout.cursor.leave()
        return self.__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        self._layout.cursor.leave()
        return self.__copy__()

    def __deepcopy__(self, memo: Any) -> Any:
        self._layout.cursor.leave()
        return self.__deepcopy__(memo)

    def register_hook(self, hook: Any) -> Any:
        self._layout.cursor.leave()
        return self.register_hook(hook)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self._layout.cursor.leave()
        return self.requires_grad_(requires_grad)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        self._layout.cursor.leave()
        return self.__dict__


_layout, _grad, _tracked = (Tensor.__dict__[n].__set__ for n in ("_layout", "_grad", "_tracked"))
_node = Tensor.__dict__["_node"].__set__
_array, _version_counter, _extra, _view_path = (Tensor.__dict__[n].__set__ for n in ("_array", "_version_counter", "_extra", "_view_path"))
_new = object.__new__


def fresh(hand: Hand) -> Any:
    """The tensor of a hand for the next run."""
    t = _new(FreshTensor)
    _layout(t, hand)
    _grad(t, None)
    _tracked(t, hand.tracked)
    if not hand.tracked:
        _node(t, None)
    return t


def settle_fresh(t: Any, array: Any, node: Callable[[], None] | None = None) -> None:
    """Make an ordinary tensor of a fresh one: its array is there. Of one that requires grad `node` gives it its node when somebody asks."""
    # its class last: another thread may look at it
    _array(t, array)
    _version_counter(t, None)
    _extra(t, None)
    _view_path(t, None)
    t.__class__ = Tensor if node is None else FreedTensor
    t._layout = None
    if node is not None:
        ensure_extra(t).node = node


class FreedTensor(Tensor):
    """A tensor that requires grad whose graph a backward has used up before anybody asked for its node, which is made then."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name == "_node":
            self._extra.node()  # type: ignore[union-attr]  # it has one: see settle_fresh
            return self._node
        raise AttributeError(f"'{Tensor.__name__}' object has no attribute {name!r}", name=name, obj=self)


for _kind in (FreshTensor, FreedTensor):  # type(x).__name__ shows in messages and reprs: what kind it is of is nobody's matter
    _kind.__name__, _kind.__qualname__, _kind.__module__ = Tensor.__name__, Tensor.__qualname__, Tensor.__module__


def make_view(t: Any, base: Any, steps: tuple[Any, ...], origin: str) -> None:
    """Make a tensor a view of its base, as the call that made it did."""
    t._version_counter, t._view_path = version_of(base), (base, *steps)
    if origin:
        ensure_extra(t).origin = origin
    live_views(base).fresh[id(t)] = weakref.ref(t)
