"""LazyArray: an array that is not computed yet. It speaks numpy's view vocabulary as every array; whoever asks for its values has what leads to them run."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from operator import index
from sys import getrefcount
from typing import Any, Self

import numpy as np

from tritensor.ground.device import device
from tritensor.ground.strides import contiguous_strides, memory_extent
from tritensor.ground.thread_state import here
from tritensor.ops.strided_array import StridedArray, reinterpreted_layout

# Segments with calls that wait: who writes to memory that there is asks them first.
waiting: set[Any] = set()
# Cursors of threads (see lazy_evaluation/known/), and those that have passed over calls: these, too, are waiting to read.
cursors: weakref.WeakSet[Any] = weakref.WeakSet()
following: set[Any] = set()


def run_before_write(array: Any) -> None:
    """Memory of an array is about to be written: calls that wait to read it run first; all do where it has no elements, as the write is counted for more than
    can be seen of it."""
    if not (waiting or following):
        return
    empty = 0 in array.shape
    for segment in tuple(waiting):
        if empty or segment.reads(array):
            segment.settle(why="memory that it reads is written")
    for cursor in tuple(following):
        if empty or cursor.reads(array):
            cursor.segment.settle(why="memory that it reads is written")


# Owners of memory on the CPU that others than tensors may write, by their id: numpy's arrays on it, buffers, what DLPack was given.
_shared: dict[int, weakref.ref[np.ndarray]] = {}


def note_shared(array: Any) -> None:
    """Memory is given to others than tensors, or came from there. What waits to read it runs first; from now on it is copied at the call that reads it."""
    if type(array) is not np.ndarray:
        return
    owner = owner_of(array)
    if id(owner) in _shared:
        return
    if waiting or cursors:
        run_before_write(array)
        for cursor in tuple(cursors):
            cursor.forget_leaf(array)
    key = id(owner)
    _shared[key] = weakref.ref(owner, lambda _: _shared.pop(key, None))  # type: ignore[arg-type, return-value]


def is_shared(array: Any) -> bool:
    """Whether others than tensors may write to an array's memory without a word."""
    return bool(_shared) and type(array) is np.ndarray and id(owner_of(array)) in _shared


def is_lent(t: Any) -> bool:
    """The same of a tensor's memory, where only the tensor itself holds it: not any more, if nobody else holds the array that it was made of."""
    if not _shared or not is_shared(t._array):
        return False
    if getrefcount(t._array) > _ALONE:
        return True
    array = t._array
    while type(array.base) is np.ndarray:
        if getrefcount(array.base) > _ALONE:
            return True
        array = array.base
    if array.base is not None:  # another library's memory, or a buffer: who holds that nobody knows
        return True
    cease_to_share(array)
    return False


class Holder:
    """What holds an object, while its references are counted, as a tensor its array."""

    __slots__ = ("_array",)

    def __init__(self, held: Any) -> None:
        self._array = held


_held = Holder(object())
_ALONE = getrefcount(_held._array)  # references to an array that one tensor holds, while they are counted


def cease_to_share(owner: np.ndarray) -> None:
    """Nobody but tensors holds an owner's memory any more."""
    _shared.pop(id(owner), None)


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array of numpy's that stands for memory: the last that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def leave_before_change(t: Any) -> None:
    """A tensor is about to look at another array, to lie in another way, or to require grad or not: what was passed over and was given it is called first, and
    it is not taken for what it was."""
    for cursor in tuple(cursors):
        cursor.forget(t)


def leave_before_move(t: Any) -> None:
    """The same of a tensor that takes another one's array: its count of writes says nothing of that memory."""
    leave_before_change(t)
    if t._version_counter is not None:
        t._version_counter.loose = True


learnt_strides: dict[Any, tuple[int, ...]] = {}  # of gradients that somebody has asked for: by op, function, and how what it was given lies
_LEARNT = 4096


class PendingStorage:
    """Memory that is to be computed: `value` says by what (a Value of a segment's graph), `real` is the array once that has run.

    A write in place gives it another `value`; windows on it (views) are taken of what it holds when they are read, and need its strides to be those
    that it began with (`fixed`). `home` is memory that existed before, which the value is written to; None: the value's memory is taken as it comes.
    """

    __slots__ = (
        "__weakref__",
        "device",
        "failure",
        "fixed",
        "guessed",
        "home",
        "instead",
        "nbytes",
        "number",
        "real",
        "segment",
        "strides",
        "value",
    )

    def __init__(self, on: device, nbytes: int, strides: tuple[int, ...], value: Any, segment: Any, home: Any = None) -> None:
        self.device, self.nbytes, self.strides, self.value, self.segment, self.home = on, nbytes, strides, value, segment, home
        self.real: Any = None
        self.instead: Any = None  # other memory that is meant: what was to compute this has been called in another way
        self.failure: Exception | None = None  # of the call that was to compute it
        self.fixed = home is not None
        self.number = -1  # of a known path: see lazy_evaluation/known/
        self.guessed: Any = None  # where its strides are no rule's, what tells them another time: who asks for them now has it computed

    def settled(self) -> Any:
        """The array, computed. Raises what the call raises that computes it, with its op and the line that made it."""
        if self.value is not None:
            self.segment.settle(self)
        if self.instead is not None:
            self.real = self.instead.settled() if type(self.instead) is PendingStorage else self.instead
        return self.real

    def learn(self, strides: tuple[int, ...]) -> None:
        """Note how its call has laid it, for the next one like that."""
        if len(learnt_strides) >= _LEARNT:
            learnt_strides.clear()
        learnt_strides[self.guessed], self.guessed = strides, None

    def __getattr__(self, name: str) -> Any:  # what it has not, the memory may have: it is asked for by address
        return getattr(self.settled().storage, name)


class LazyArray(np.lib.mixins.NDArrayOperatorsMixin, StridedArray):
    """A strided window on a PendingStorage; `offset` in elements from its first one. What neither this class nor StridedArray has, the computed array
    is asked for."""

    __slots__ = ("_said", "_window", "first", "whole")
    storage: PendingStorage

    def __init__(
        self, storage: PendingStorage, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None = None, offset: int = 0
    ) -> None:
        self.storage, self.shape, self.dtype = storage, shape, dtype
        self.strides = contiguous_strides(shape) if strides is None else strides
        self.first = offset * dtype.itemsize  # bytes between the storage's first element and this window's
        self.whole = False  # whether it is no window, but all of the storage as it lies
        self._window: Any = None  # the computed array
        self.known_layout = None

    __hash__ = object.__hash__

    # -- its memory
    @property
    def strides(self) -> tuple[int, ...]:  # type: ignore[override]
        """In elements: as was said, until the array is there."""
        storage = self.storage
        if not self.whole or (storage.real is None and (storage.fixed or storage.guessed is None)):
            return self._said  # type: ignore[no-any-return]
        real = storage.settled()
        return real.strides if isinstance(real, StridedArray) else tuple([s // real.itemsize for s in real.strides])

    @strides.setter
    def strides(self, strides: tuple[int, ...]) -> None:
        self._said = strides

    @property
    def predicted(self) -> tuple[int, ...]:
        """The strides as they are expected, for whoever would not have the array computed to know them."""
        return self.strides if self.storage.real is not None else self._said  # type: ignore[no-any-return]

    @property
    def pending(self) -> bool:
        """Whether it has yet to be computed."""
        return self.storage.value is not None

    @property
    def offset(self) -> int:
        return self.first // self.dtype.itemsize

    def settled(self) -> Any:
        """The computed array of this window: numpy's, or a CudaArray."""
        real = self.storage.settled()
        if self.whole:
            return real
        if self._window is None:
            self._window = window_of(real, self.shape, self.dtype, self.strides, self.first)
        return self._window

    def stand_for(self, array: Any) -> None:
        """Be another array from now on: the calls that were to compute this one have been made in another way."""
        storage = self.storage
        storage.value = storage.segment = None
        storage.instead = array.storage if type(array) is LazyArray else array
        if type(array) is not LazyArray:  # just this window
            self.whole, self.first = True, 0

    def shown_by(self, tensor: Any) -> None:
        """Remember a tensor that is to be given the computed array when it is there."""
        segment = self.storage.segment
        if segment is not None:
            segment.tensors.append(weakref.ref(tensor))

    @property
    def pointer(self) -> int:  # type: ignore[override]
        """Address of the first element, which is computed for it."""
        return self.data_ptr()

    def data_ptr(self) -> int:
        array = self.settled()
        return array.data_ptr() if isinstance(array, StridedArray) else int(array.ctypes.data)

    def reshape(self, *shape: Any, **named: Any) -> Any:
        """A view of another shape, given as a tuple; numpy's other ways, and a copy where the strides allow no view, are the computed array's."""
        if len(shape) == 1 and type(shape[0]) is tuple and -1 not in shape[0] and not named:
            return super().reshape(shape[0])
        return self.settled().reshape(*shape, **named)

    def transpose(self, *axes: Any) -> Any:
        if len(axes) == 1 and type(axes[0]) is tuple:
            return super().transpose(axes[0])
        return self.settled().transpose(*axes)

    def view(self, dtype: Any) -> Self:
        """The same bytes as another element type; see `reinterpreted_layout`."""
        made = np.dtype(dtype)
        shape, strides = reinterpreted_layout(self.shape, self.strides, self.first, self.dtype, made)
        return self._at(shape, made, strides, self.first)

    def as_strided(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Self:
        return self._at(shape, self.dtype, strides, self.first + offset * self.dtype.itemsize)

    def _at(self, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...], first: int) -> Self:
        """A window, from a byte on. From now on the storage lies as was said."""
        out = self.__class__(self.storage, tuple(map(index, shape)), dtype, strides)
        out.first = first
        self.storage.fixed = True
        return out

    @property
    def real(self) -> Any:
        """The real parts, as numpy's arrays have them: a view."""
        return self._part(0)

    @property
    def imag(self) -> Any:
        """The imaginary parts of complex numbers: a view."""
        return self._part(1) if self.dtype.kind == "c" else self.settled().imag

    def _part(self, which: int) -> Any:
        if self.dtype.kind != "c":
            return self
        half = np.dtype(f"f{self.dtype.itemsize // 2}")
        return self._at(self.shape, half, tuple([2 * s for s in self.strides]), self.first + which * half.itemsize)

    # -- its values
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__array_interface__":  # protocols that arrays do not speak
            raise AttributeError(name)
        return getattr(self.settled(), name)

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if all([i is None or i is Ellipsis or isinstance(i, int | np.integer | slice) for i in parts]):
            return super().__getitem__(index)
        return self.settled()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.settled()[index] = settle(value)

    def __array__(self, *given: Any, **named: Any) -> np.ndarray:
        return np.asarray(self.settled()).__array__(*given, **named)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if "out" in named:
            named["out"] = settle(named["out"])
        return getattr(ufunc, method)(*settle(inputs), **named)

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> Any:
        return function(*settle(given), **{k: settle(v) for k, v in named.items()})

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.settled())

    def __bool__(self) -> bool:
        return bool(self.settled())

    def __int__(self) -> int:
        return int(self.settled())

    def __float__(self) -> float:
        return float(self.settled())

    def __complex__(self) -> complex:
        return complex(self.settled())

    def __index__(self) -> int:
        return self.settled().__index__()  # type: ignore[no-any-return]


def compute_now(*tensors: Any) -> None:
    """Give tensors that are lazy their computed arrays: their memory is about to be read, or written, by address."""
    for t in tensors:
        if type(t._array) is LazyArray:
            t._set_array(t._array.settled())


def show_computed(t: Any) -> None:
    """Give a tensor the array of its lazy one where that has been computed: it is the same memory, so that nothing which waits reads another."""
    array = t._array
    if type(array) is LazyArray and not array.pending:
        t._array, t._layout = array.settled(), None


@contextmanager
def at_once(*tensors: Any) -> Iterator[None]:
    """Inside, ops run as they are called; tensors that they are given are computed first, as what is lazy would be noted all the same."""
    compute_now(*tensors)
    before, here.segment = here.segment, None
    try:
        yield
    finally:
        here.segment = before


def settle(x: Any) -> Any:
    """x with computed arrays in place of lazy ones, in tuples and lists too."""
    if type(x) is LazyArray:
        return x.settled()
    if type(x) is tuple or type(x) is list:
        return type(x)([settle(y) for y in x])
    return x


def window_of(whole: Any, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...], first: int) -> Any:
    """A window on a computed array's memory: strides in elements of dtype, `first` in bytes from its first element."""
    if isinstance(whole, StridedArray):
        if first == 0 and whole.shape == shape and whole.strides == strides and whole.dtype == dtype:
            return whole
        out = whole.__class__(whole.storage, shape, dtype, strides)
        out.pointer = whole.pointer + first
        return out
    in_bytes = tuple([s * dtype.itemsize for s in strides])
    if first == 0 and whole.shape == shape and whole.dtype == dtype and (whole.strides == in_bytes or whole.size <= 1):
        return whole
    memory, start = _memory_of(whole)
    if 0 in shape:  # there is no element, but a place
        return np.ndarray(shape, dtype, memory, min(start + first, memory.size), in_bytes)
    return np.ndarray(shape, dtype, memory, start + first, in_bytes)


def _memory_of(whole: np.ndarray) -> tuple[np.ndarray, int]:
    """All bytes of an array from the lowest address to the highest, and where among them its first element begins."""
    if whole.flags.c_contiguous:
        return whole.reshape(-1).view(np.uint8), 0
    low, high = memory_extent(whole.shape, whole.strides)
    lowest = whole[tuple([slice(None, None, -1 if s < 0 else 1) for s in whole.strides])]
    # numpy's as_strided does not know float8
    raw = np.lib.stride_tricks.as_strided(lowest.view(np.uint8) if whole.itemsize == 1 else lowest, (1,), (whole.itemsize,)).view(np.uint8)
    return np.lib.stride_tricks.as_strided(raw.reshape(-1), (high - low + whole.itemsize,), (1,)), -low
