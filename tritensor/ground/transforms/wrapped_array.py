"""The array of a tensor inside a transform: an array's shape and type, and no memory of its own."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tritensor.ground.errors import NoValuesError
from tritensor.ground.strides import contiguous_format, is_in_format
from tritensor.ground.transforms import transform
from tritensor.ground.transforms.levels import TRACE, Level


class WrappedArray:
    """What a tensor holds inside a transform.

    Attributes:
        level: the transform's.
        value: the Tensor below: of vmap the whole batch, its examples along dimension 0 where `batched`; of jvp the primal.
        tangent: of jvp the tangent, a Tensor, or None for zeros.
        instance: of __torch_dispatch__ whose object it is, a torch_dispatch.instances.Instance; else None.
        shape, dtype: as the transformed function sees them.
    """

    __slots__ = ("__weakref__", "batched", "dtype", "instance", "level", "shape", "tangent", "value")

    def __init__(self, level: Level, value: Any, batched: bool = False, tangent: Any = None, instance: Any = None) -> None:
        self.level = level
        self.value = value
        self.batched = batched
        self.tangent = tangent
        self.instance = instance
        shape = value._array.shape
        self.shape: tuple[int, ...] = shape[1:] if batched else shape
        self.dtype: np.dtype[Any] = value._array.dtype

    @property
    def device(self) -> Any:
        return self.value.device if self.instance is None else self.instance.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        n = 1
        for m in self.shape:
            n *= m
        return n

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes, as numpy counts."""
        steps = self.value.stride()
        return tuple([s * self.dtype.itemsize for s in (steps[1:] if self.batched else steps)])

    def is_contiguous(self) -> bool:
        """Whether what the function sees lies in C order."""
        return is_in_format(self.shape, [s // self.dtype.itemsize for s in self.strides], contiguous_format)

    @property
    def flags(self) -> _Flags:
        return _Flags(self.is_contiguous())

    def on_host(self) -> np.ndarray:
        """The values, where there is one for each element. Raises TransformError for one example of a batch, whose values are many."""
        # after the transform a batch's array is an ordinary one
        if self.batched and self.level.alive:
            raise NoValuesError(
                self.level,
                "vmap: this function needs a tensor's values (.item(), .numpy(), bool(), a size that depends on them), and under vmap there "
                "are as many as examples; write it with tensor operations (where instead of if), or call it outside vmap",
            )
        if self.instance is not None:
            return self.instance.read(self)  # type: ignore[no-any-return]
        if self.level.kind == TRACE and self.level.alive:
            transform.current.read(self)
        found: np.ndarray = self.value.numpy(force=True)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.on_host(), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.add and method == "__call__" and not kwargs:
            return transform.current.add(*inputs)
        return NotImplemented

    def __getattr__(self, name: str) -> NoReturn:
        # for its error, which says what to do: numpy asks for methods by name before it gives up
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            self.on_host()
        raise AttributeError(f"{self.level.kind}: inside the function that is transformed a tensor has no memory of its own ({name})")

    def __repr__(self) -> str:
        return f"WrappedArray({self.level.kind} {self.level.number}, shape={self.shape})"


class _Flags:
    """What is asked of numpy's flags."""

    __slots__ = ("c_contiguous", "writeable")

    def __init__(self, c_contiguous: bool) -> None:
        self.c_contiguous = c_contiguous
        self.writeable = True
