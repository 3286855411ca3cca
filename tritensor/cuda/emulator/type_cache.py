"""Operations of Triton's language done in full once: for operands of the same types, every later one asks the builder for the same at once.

Triton's language is written for a compiler, to which values are opaque. What an operation asks of the builder (casts, broadcasts, the
operation itself) follows from the types of its operands and from numbers known at compile time. So what the first of a kind asked for is
noted, and asked for again without the rules that led there, which were most of a kernel's time. What comes of constants alone is kept itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import triton.language as tl
from triton.runtime import interpreter as upstream

from tritensor.cuda.emulator.address_overflow import KEY

_KEPT = 1 << 12  # kinds of operands of one operation, and of blocks: no kernel has as many, a day of benchmarks may
_LARGEST = 1 << 10  # elements of a constant that is kept
_Handle = upstream.TensorHandle
_block_init = tl.block_type.__init__
_tensor_init = tl.tensor.__init__
_blocks: dict[tuple[Any, ...], dict[str, Any]] = {}
_types: dict[int, Any] = {}  # those of tensors, by the ids that they are known by
_known: dict[Any, dict[Any, Callable[..., Any] | None]] = {}  # by operation and kinds of operands: how to ask for it again
_Tensor, _new = tl.tensor, object.__new__
_WIDTHS = {t.name: max(1, t.primitive_bitwidth // 8) for t in vars(tl).values() if type(t) is tl.dtype and t.name != "void"}  # bytes
# Requests that come to a constant where they are made of constants alone; so do those that get_ begins.
_PURE = frozenset({
    "create_make_range", "create_splat", "create_broadcast", "create_expand_dims", "create_reshape", "create_int_cast",
    "create_si_to_fp", "create_ui_to_fp", "create_fp_to_fp", "create_fp_ext", "create_fp_trunc",
})  # fmt: skip
_PLAIN = frozenset({int, bool, str, type(None), type(tl.PropagateNan.ALL)})


def _block(self: Any, element_ty: Any, shape: Any) -> None:
    """block_type.__init__: what the first block of these sizes came to, which is the `one` that tensors have for their type."""
    key = (element_ty.name, type(element_ty), *[n.value if type(n) is tl.constexpr else n for n in shape])
    found = _blocks.get(key)
    if found is None:
        _block_init(self, element_ty, shape)
        if len(_blocks) >= _KEPT:
            _blocks.clear()
        _blocks[key] = {**self.__dict__, "one": self}
    else:
        self.__dict__.update(found)


def _tensor(self: Any, handle: Any, type: Any) -> None:
    """tensor.__init__: equal types of blocks are one object, so that they are known by their id."""
    one = type.__dict__.get("one", type)
    _types[id(one)] = one
    _tensor_init(self, handle, one)


def _handle(self: Any, data: Any, dtype: Any, attr: dict[str, Any] | None = None) -> None:
    """TensorHandle.__init__: no value is wider than its type."""
    self.data, self.dtype, self.attr = data, dtype, {} if attr is None else attr
    # __post_init__ narrows what is too wide, and Triton asks it of every handle
    if data.itemsize > _WIDTHS.get(dtype.name, 8):
        self.__post_init__()


class _Unknown(Exception):
    """An argument of which an operation may ask more than its type, or a value that was made without the builder."""


def _kind(value: Any, handles: list[Any]) -> Any:
    """What an operation may ask about an argument: the type of a tensor, whose handle is added to `handles`, and all of anything else."""
    kind = type(value)
    if kind is _Tensor:
        handles.append(value.handle)
        return id(value.type)
    if kind in _PLAIN:
        return kind, value
    if kind is tl.constexpr:
        return kind, _kind(value.value, handles)
    if kind is float:
        return kind, value.hex()  # tells -0.0 from 0.0
    if kind is tuple or kind is list:
        return kind, tuple([_kind(v, handles) for v in value])
    if kind is slice:
        return kind, _kind([value.start, value.stop, value.step], handles)
    if isinstance(value, tl.dtype):
        return kind, value.name
    raise _Unknown


class _Recorder:
    """The builder while an operation is done in full. Values have places: (0, n) an operand, (1, n) a constant, (2, n) what a request gave."""

    def __init__(self, builder: Any, operands: list[Any]) -> None:
        self._builder = builder
        self._kept = list(operands)  # no two handles have one id
        self._places = {id(h): (0, n) for n, h in enumerate(operands)}
        self.constants: list[Any] = []
        self.requests: list[tuple[Callable[..., Any], list[tuple[int, int]]]] = []
        self.understood = len(self._places) == len(operands)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._builder, name)
        return partial(self._ask, name, found) if name.startswith(("create_", "get_")) else found

    def _ask(self, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        out, gets = method(*args, **kwargs), name.startswith("get_")
        if kwargs or (not isinstance(out, _Handle) and (gets or out is not None)):
            self.understood &= gets  # a type, or the like, which is a constant
            return out
        self._kept.append(out)
        sizes = [len(a) if isinstance(a, list) and any(isinstance(v, _Handle) for v in a) else None for a in args]
        at = [self._place(v) for a, n in zip(args, sizes, strict=True) for v in ([a] if n is None else a)]
        constant = (gets or name in _PURE) and all(kind == 1 for kind, _ in at)
        if constant and out.data.size <= _LARGEST and KEY not in out.attr:
            out.data.flags.writeable = False  # every later operation gets the same
            self._places[id(out)] = self._constant(_copy_handle(out))
        else:
            self._request(method if sizes.count(None) == len(sizes) else partial(_regroup, method, sizes), at, out)
        return out

    def _request(self, method: Callable[..., Any], at: list[tuple[int, int]], out: Any) -> None:
        self._places[id(out)] = (2, len(self.requests))
        self.requests.append((method, at))

    def _constant(self, value: Any) -> tuple[int, int]:
        self.constants.append(value)
        return 1, len(self.constants) - 1

    def _place(self, value: Any) -> tuple[int, int]:
        found = self._places.get(id(value))
        if found is None:  # a constant, or a value that was made without the builder
            self.understood &= _is_plain(value)
            found = self._constant(value)
        return found

    def again(self, operands: int, result: Any) -> Callable[[list[Any]], Any] | None:
        """The operation on the handles of other operands of the same types, or None where it is done in full each time."""
        if result is None:
            result = tl.tensor(None, tl.void)
        if type(result) is not _Tensor:
            return None
        kind, at = self._place(result.handle)
        if kind == 1 and result.handle is not None:  # what is done to a result, such as a hint, is done to no constant
            self._request(_copy_handle, [(kind, at)], result.handle)
            kind, at = self._places[id(result.handle)]
        if not self.understood:
            return None
        start = (0, operands, operands + len(self.constants))
        requests = [(method, [start[k] + n for k, n in places]) for method, places in self.requests]
        made = {k: v for k, v in vars(result).items() if k != "handle"}
        return partial(_again, self.constants, requests, start[kind] + at, made)


def _again(constants: list[Any], requests: list[tuple[Any, list[int]]], at: int, made: dict[str, Any], values: list[Any]) -> Any:
    values += constants
    for method, places in requests:
        values.append(method(*map(values.__getitem__, places)))
    tensor = _new(_Tensor)
    tensor.__dict__.update(made)
    tensor.handle = values[at]
    return tensor


def _is_plain(value: Any) -> bool:
    """Whether a request's argument holds no value of the kernel."""
    if isinstance(value, list | tuple | tl.tuple):
        return all(_is_plain(v) for v in value)
    return type(value) in (*_PLAIN, float, tl.constexpr) or isinstance(value, tl.dtype) or type(value).__module__.startswith("triton._C.")


def _regroup(method: Callable[..., Any], sizes: list[int | None], *values: Any) -> Any:
    """A request some of whose arguments are lists of so many values."""
    left = iter(values)
    return method(*[next(left) if n is None else [next(left) for _ in range(n)] for n in sizes])


def _copy_handle(handle: Any) -> Any:
    return _Handle(handle.data, handle.dtype, dict(handle.attr))


def _with_own_handle(value: Any) -> Any:
    """A tensor that may stand among the operands twice, as another."""
    return tl.tensor(_copy_handle(value.handle), value.type) if type(value) is _Tensor and type(value.handle) is _Handle else value


def _run_in_full(function: Callable[..., Any], semantic: Any, args: Any, kwargs: Any) -> tuple[Any, Callable[..., Any] | None]:
    """The result of an operation, and how to ask for it again: None says that it is done in full each time."""
    args = [_with_own_handle(a) for a in args]
    handles: list[Any] = []
    _kind([*args, *kwargs.values()], handles)
    builder = semantic.builder
    semantic.builder = recorder = _Recorder(builder, handles)
    try:
        result = function(*args, **kwargs, _semantic=semantic)
    finally:
        semantic.builder = builder
    return result, recorder.again(len(handles), result)


def patch_attribute(owner: Any, name: str, member: Any, builder: Any, scope: Any) -> None:
    """In place of Triton's: the builtin's function itself, the first time for operands of their kinds."""
    function, semantic = getattr(member, "__wrapped__", member), upstream.interpreter_semantic
    known = _known.setdefault(function, {})

    def builtin(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("_semantic", None)
        if semantic.builder is not builder:  # another operation is done in full: this is part of it
            return function(*args, **kwargs, _semantic=semantic)
        handles: list[Any] = []
        kinds: list[Any] = []
        try:
            for a in args:
                if type(a) is _Tensor:
                    handles.append(a.handle)
                    kinds.append(id(a.type))
                else:
                    kinds.append(_kind(a, handles))
            for k, v in kwargs.items():
                kinds.append((k, _kind(v, handles)))
        except _Unknown:
            return function(*args, **kwargs, _semantic=semantic)
        key = tuple(kinds)
        again = known.get(key, _run_in_full)
        if again is _run_in_full:
            # all at once: no order of use is kept, which would cost each operation
            if len(known) >= _KEPT:
                known.clear()
            result, known[key] = _run_in_full(function, semantic, args, kwargs)
            return result
        return function(*args, **kwargs, _semantic=semantic) if again is None else again(handles)

    scope.set_attr(owner, name, builtin)


def install() -> None:
    """Put the constructors where Triton has its own."""
    tl.block_type.__init__ = _block
    tl.tensor.__init__ = _tensor
    upstream.TensorHandle.__init__ = _handle
