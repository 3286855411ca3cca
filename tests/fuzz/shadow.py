"""The aliasing model: tensors as numpy views of one memory each, which run the same programs as far as they consist of views and plain writes."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from tests.fuzz.running import Look


class Unsupported(Exception):
    """A statement that the model does not know; what follows is not compared."""


class Shadow:
    """A tensor of the model. A view is numpy's view of the same memory; a write is numpy's."""

    def __init__(self, array: np.ndarray) -> None:
        self.a = array

    def shadow_look(self) -> Look:
        """As running.look() sees it; the model knows no types, layouts and graphs."""
        return Look("float64", self.a.shape, (), np.array(self.a), False, True, None)

    shape = property(lambda self: self.a.shape)
    mT = property(lambda self: Shadow(self.a.swapaxes(-1, -2)))  # noqa: N815 PyTorch's name
    T = property(lambda self: Shadow(self.a.T))
    ndim = property(lambda self: self.a.ndim)

    def __getitem__(self, key: Any) -> Shadow:
        _basic(key)
        return Shadow(self.a[key] if _keeps(key) else self.a[_all(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        _basic(key)
        self.a[key] = _plain(value)

    def transpose(self, d: int, e: int) -> Shadow:
        return Shadow(self.a.swapaxes(d, e))

    swapaxes = transpose

    def permute(self, dims: list[int]) -> Shadow:
        return Shadow(self.a.transpose(dims))

    def movedim(self, d: int, e: int) -> Shadow:
        return Shadow(np.moveaxis(self.a, d, e))

    def unsqueeze(self, d: int) -> Shadow:
        return Shadow(np.expand_dims(self.a, d))

    def squeeze(self, d: int | None = None) -> Shadow:
        if d is None:
            return Shadow(self.a.squeeze())
        return Shadow(self.a.squeeze(d) if self.a.ndim and self.a.shape[d] == 1 else self.a[...])

    def reshape(self, *sizes: Any) -> Shadow:
        return Shadow(self.a.reshape(*sizes))

    def view(self, *sizes: Any) -> Shadow:
        made = self.a.reshape(*sizes)
        if made.size and not np.shares_memory(made, self.a):
            raise Unsupported("a view that would be a copy")
        return Shadow(made)

    def view_as(self, other: Shadow) -> Shadow:
        return self.view(other.a.shape)

    def flatten(self, start: int = 0, end: int = -1) -> Shadow:
        n = self.a.ndim
        if not n:
            return Shadow(self.a.reshape(1))
        start, end = start % n, end % n
        return Shadow(
            self.a.reshape(*self.a.shape[:start], int(np.prod(self.a.shape[start : end + 1], dtype=int)), *self.a.shape[end + 1 :])
        )

    def expand(self, *sizes: Any) -> Shadow:
        want = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple) else sizes
        made = np.broadcast_to(self.a, want)
        made.flags.writeable = True
        return Shadow(made)

    def narrow(self, d: int, start: int, length: int) -> Shadow:
        return Shadow(self._cut(d, slice(start, start + length)))

    def select(self, d: int, place: int) -> Shadow:
        return Shadow(self._cut(d, slice(place % self.a.shape[d], place % self.a.shape[d] + 1)).squeeze(d))

    def split(self, size: int, d: int = 0) -> list[Shadow]:
        return [Shadow(self._cut(d, slice(k, k + size))) for k in range(0, max(self.a.shape[d], 1), size)]

    def chunk(self, count: int, d: int = 0) -> list[Shadow]:
        return self.split(max(-(-self.a.shape[d] // count), 1), d)

    def tensor_split(self, count: int, d: int = 0) -> list[Shadow]:
        return [Shadow(part) for part in np.array_split(self.a, count, d)]

    def unbind(self, d: int = 0) -> list[Shadow]:
        return [self.select(d, k) for k in range(self.a.shape[d])]

    def unfold(self, d: int, size: int, step: int) -> Shadow:
        if not self.a.ndim:
            raise Unsupported("unfold of no dimension")
        d %= self.a.ndim
        windows = np.lib.stride_tricks.sliding_window_view(self.a, size, axis=d, writeable=True)
        return Shadow(windows[(slice(None),) * d + (slice(None, None, step),)])

    def unflatten(self, d: int, sizes: tuple[int, ...]) -> Shadow:
        d %= self.a.ndim
        return self.view(*self.a.shape[:d], *sizes, *self.a.shape[d + 1 :])

    def diagonal(self, offset: int = 0) -> Shadow:
        made = self.a.diagonal(offset)
        made.flags.writeable = True
        return Shadow(made)

    def clone(self) -> Shadow:
        return Shadow(self.a.copy())

    def sum(self) -> Shadow:
        return Shadow(np.asarray(self.a.sum()))

    def _cut(self, d: int, part: slice) -> np.ndarray:
        if not self.a.ndim:
            raise Unsupported("a dimension of a tensor that has none")
        return self.a[(slice(None),) * (d % self.a.ndim) + (part,)]

    def fill_(self, value: float) -> Shadow:
        self.a[...] = value
        return self

    def zero_(self) -> Shadow:
        return self.fill_(0)

    def copy_(self, other: Any) -> Shadow:
        self.a[...] = np.array(_plain(other))
        return self


def _basic(key: Any) -> None:
    parts = key if isinstance(key, tuple) else (key,)
    if not all(p is None or p is Ellipsis or isinstance(p, slice) or type(p) is int for p in parts):
        raise Unsupported("an index that copies")


def _keeps(key: Any) -> bool:
    """Whether numpy gives a view of it, and no number: an index with ... does."""
    return any(p is Ellipsis for p in (key if isinstance(key, tuple) else (key,)))


def _all(key: Any) -> tuple[Any, ...]:
    return (*(key if isinstance(key, tuple) else (key,)), ...)


def _plain(value: Any) -> Any:
    return value.a if isinstance(value, Shadow) else value


def _unary(f: Any) -> tuple[Any, Any]:
    def made(self: Shadow) -> Shadow:
        return Shadow(np.asarray(f(self.a)))

    def written(self: Shadow) -> Shadow:
        self.a[...] = f(self.a)
        return self

    return made, written


def _binary(f: Any) -> tuple[Any, Any]:
    def made(self: Shadow, other: Any) -> Shadow:
        return Shadow(np.asarray(f(self.a, _plain(other))))

    def written(self: Shadow, other: Any) -> Shadow:
        self.a[...] = f(self.a, _plain(other))
        return self

    return made, written


for _name, _f in {
    "neg": np.negative,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "exp": np.exp,
    "square": np.square,
    "abs": np.abs,
}.items():
    for _suffix, _method in zip(("", "_"), _unary(_f), strict=True):
        setattr(Shadow, _name + _suffix, _method)
for _name, _f in {"add": np.add, "sub": np.subtract, "mul": np.multiply}.items():
    _made, _written = _binary(_f)
    setattr(Shadow, _name, _made)
    setattr(Shadow, _name + "_", _written)
    setattr(Shadow, f"__{_name}__", _made)
    setattr(Shadow, f"__i{_name}__", _written)


def library() -> Any:
    """What stands for `tt` in the model: tensor and zeros, and names of types that mean nothing."""
    made = types.SimpleNamespace(nn=types.SimpleNamespace(functional=None), float64=np.float64, manual_seed=lambda seed: None)
    made.tensor = lambda values, dtype=None, device=None, requires_grad=False: Shadow(np.array(values, dtype=np.float64))
    made.zeros = lambda sizes, dtype=None, device=None, requires_grad=False: Shadow(np.zeros(sizes))
    return made
