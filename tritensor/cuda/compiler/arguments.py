"""Arguments of a launch: matched to the kernel's parameters by position and name, each with the Triton type of its value."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.ground import dtypes
from tritensor.ground.errors import DeviceError, LaunchError

_OPTIONS = frozenset({"maxnreg", "enable_fp_fusion", "extern_libs", "debug", "ptx_options", "ir_override", "sanitize_overflow"})
DESCRIPTOR = "tensordesc"  # the type of a tensor descriptor among a launch's values


class Constant(NamedTuple):
    """An argument that is compiled in although its parameter is no constexpr, as Triton does with the integer 1."""

    value: Any


class Parameter(NamedTuple):
    """One parameter of a kernel. `type` is the Triton type its annotation forces ("i64"), "" without one."""

    name: str
    constexpr: bool
    type: str
    default: Any


@cache
def parameters(function: Any) -> tuple[Parameter, ...]:
    """The parameters of the Python function under a `@triton.jit` kernel."""
    from triton.runtime.jit import _normalize_ty

    found = []
    for p in inspect.signature(function).parameters.values():
        written = "" if p.annotation is p.empty else _normalize_ty(p.annotation)
        constexpr = "constexpr" in written
        found.append(Parameter(p.name, constexpr, "" if constexpr or not _is_scalar_type(written) else written, p.default))
    return tuple(found)


def _is_scalar_type(name: str) -> bool:
    return name in {d.triton for d in dtypes.ALL if d.triton}


class Plan:
    """What a launch asks of its kernel's parameters, by place: names, which are constexprs; and by name: `place`, `constants`. Made
    once for a kernel.

    The rest is read when it is first asked for: it makes Triton read the kernel's source, which an interpreted kernel that is only run never needs.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.parameters = parameters(kernel.fn)
        self.names = tuple([p.name for p in self.parameters])
        self.constexpr = tuple([p.constexpr for p in self.parameters])
        self.constants = frozenset([p.name for p in self.parameters if p.constexpr])
        self.place = {name: i for i, name in enumerate(self.names)}

    @cached_property
    def defaults(self) -> dict[str, Any]:
        return {p.name: p.default for p in self.parameters if p.default is not inspect.Parameter.empty}

    @cached_property
    def compiled(self) -> bool:
        """Whether it is no interpreted kernel."""
        from triton.runtime.jit import JITFunction

        return issubclass(type(self._kernel), JITFunction)

    @cached_property
    def ones(self) -> tuple[bool, ...]:
        """Which parameters Triton itself compiles in when they are 1."""
        plain = {p.name for p in getattr(self._kernel, "params", ()) if p.do_not_specialize}
        return tuple([not p.constexpr and not p.type and p.name not in plain for p in self.parameters])

    @cached_property
    def plain(self) -> frozenset[str]:
        """Parameters that the kernel's author declared do_not_specialize: integers whose divisibility decides nothing."""
        getattr(self._kernel, "constructed", None)  # see jit/deferred.py: another thread may be at it
        return frozenset({p.name for p in getattr(self._kernel, "params", ()) if p.do_not_specialize or p.do_not_specialize_on_alignment})


def _make_plan(kernel: Any) -> Plan:
    """The plan of a kernel that has none yet. Raises LaunchError for what is no kernel."""
    if not hasattr(getattr(kernel, "fn", None), "__code__"):
        _refuse_kernel(kernel)
    made = kernel._tritensor_plan = Plan(kernel)
    return made


def _refuse_kernel(kernel: Any) -> NoReturn:
    """Say what launch() takes in place of something that is no kernel, or that chooses a kernel's constants by itself."""
    inner = kernel
    while hasattr(getattr(inner, "fn", None), "fn"):
        inner = inner.fn
    if inner is not kernel:
        name = inner.__name__
        raise LaunchError(
            f"launch {name}: it is under triton.{type(kernel).__name__.lower().replace('autotuner', 'autotune')}, which chooses constants when a kernel is "
            f"called: write {name}[grid](...), or give launch() the kernel itself ({name}.fn) and all its constants"
        )
    what = getattr(kernel, "__name__", type(kernel).__name__)
    raise LaunchError(f"launch: {what} is no Triton kernel; decorate the function with @triton.jit")


class LaunchCall:
    """One launch on its way down: made once where a kernel is started, filled in by each step, and what runtimes and recorders are given.

    `args` are the kernel's positional parameters in order (arrays, numbers, tuples of them, and functions where the parameter is a constexpr),
    `named` the rest by name, `options` what the compiler is told beside warps and stages. Raises LaunchError for what is no kernel.
    """

    __slots__ = ("args", "grid", "kernel", "named", "num_stages", "num_warps", "options", "plan")

    def __init__(
        self, kernel: Any, grid: Any, args: tuple[Any, ...], named: dict[str, Any], num_warps: int = 4, num_stages: int = 3,
        options: tuple[tuple[str, Any], ...] = (),
    ) -> None:  # fmt: skip
        try:
            self.plan: Plan = kernel.__dict__["_tritensor_plan"]  # not by getattr, which would make a deferred kernel read its source
        except (AttributeError, KeyError):
            self.plan = _make_plan(kernel)
        self.kernel, self.grid, self.args, self.named = kernel, grid, args, named
        self.num_warps, self.num_stages, self.options = num_warps, num_stages, options

    def given(self, args: tuple[Any, ...], named: dict[str, Any]) -> LaunchCall:
        """The same launch of other arguments."""
        return LaunchCall(self.kernel, self.grid, args, named, self.num_warps, self.num_stages, self.options)

    def by_name(self) -> dict[str, Any]:
        """The arguments by name, defaults among them."""
        return {**self.plan.defaults, **dict(zip(self.plan.names, self.args, strict=False)), **self.named}


def bind(call: LaunchCall) -> list[tuple[Parameter, Any]]:
    """Each parameter of a launch's kernel with its value. Raises TypeError for a missing, doubled or unknown argument."""
    wanted, args, by_name = call.plan.parameters, call.args, call.named
    name = call.kernel.fn.__name__
    if len(args) > len(wanted):
        raise TypeError(f"launch {name}: {len(args)} arguments for {len(wanted)} parameters ({', '.join(p.name for p in wanted)})")
    out = list(zip(wanted, args, strict=False))
    rest = dict(by_name)
    for p in wanted[: len(args)]:
        if p.name in rest:
            raise TypeError(f"launch {name}: {p.name} is given by position and by name")
    for p in wanted[len(args) :]:
        if p.name in rest:
            out.append((p, rest.pop(p.name)))
        elif p.default is not inspect.Parameter.empty:
            out.append((p, p.default))
        else:
            raise TypeError(f"launch {name}: no value for parameter {p.name}; it takes ({', '.join(q.name for q in wanted)})")
    if rest:
        options = [k for k in rest if k in _OPTIONS]
        raise TypeError(
            f"launch {name}: no parameter is called {', '.join(rest)}; it takes ({', '.join(p.name for p in wanted)})"
            + (f"; options of Triton's compiler such as {options[0]} are given to {name}[grid](...)" if options else "")
        )
    for p, value in out:
        if p.constexpr and is_array(value):
            raise TypeError(
                f"launch {name}: {p.name} is a constexpr, compiled into the kernel, and was given an array; give a number, or leave tl.constexpr out"
            )
    return out


def is_array(x: Any) -> bool:
    """Whether a value is an array on the device (a CudaArray, known by its storage and address: arrays live one floor up)."""
    return hasattr(x, "pointer") and hasattr(x, "storage")


def scalar_type(value: Any, name: str = "", kernel: str = "") -> str:
    """The Triton type of a number: bool i1, int i32 (i64, u64 where it does not fit), float fp32, numpy scalars their own. Raises TypeError, naming the
    kernel's parameter, for what is none."""
    if isinstance(value, np.generic):
        found = dtypes.of(value.dtype).triton
        if found is None:
            raise TypeError(f"launch {kernel}: {name} is a number of type {value.dtype}, which no kernel takes")
        return found
    # before int, of which bool is a subclass
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return "i32"
        if -(2**63) <= value < 2**63:
            return "i64"
        if 2**63 <= value < 2**64:
            return "u64"
        raise TypeError(f"launch {kernel}: {name} is {value}, which does not fit 64 bits")
    if isinstance(value, float):
        return "fp32"
    text = "; a text can be a tl.constexpr parameter" if isinstance(value, str) else ""
    raise TypeError(
        f"launch {kernel}: {name}: {type(value).__name__} is nothing a kernel takes; give a tensor, a number, None or a tuple of these{text}"
    )


def pointer_type(x: Any) -> str:
    """The Triton type of an array argument: "*fp32"."""
    return f"*{dtypes.of(x.dtype).triton}"


def arrays_of(typed: list[tuple[str, Any]]) -> list[Any]:
    """The arrays among a launch's values, described ones too, in the kernel's order."""
    return [v.array if kind == DESCRIPTOR else v for kind, v in typed if kind[0] == "*" or kind == DESCRIPTOR]


def _arrays_by_name(value: Any, name: str) -> list[tuple[str, Any]]:
    """The arrays in an argument, with the names that an error calls them."""
    if isinstance(value, tuple):
        return [found for i, v in enumerate(value) for found in _arrays_by_name(v, f"{name}[{i}]")]
    if type(value) is TensorDescriptor:
        return [(name, value.array)]
    return [(name, value)] if is_array(value) else []


def check_one_device(kernel: Any, bound: list[tuple[Parameter, Any]]) -> None:
    """Raise DeviceError, naming the arguments, when the arrays of a launch are not all on the GPU of the first."""
    found = [pair for p, v in bound for pair in _arrays_by_name(v, p.name)]
    for name, x in found[1:]:
        first, y = found[0]
        if x.storage.device != y.storage.device:
            raise DeviceError(
                f"launch {kernel.fn.__name__}: {first} is on {y.storage.device} and {name} on {x.storage.device}; "
                "a kernel runs on one GPU and gets arrays of that one only: copy the other there first"
            )


def check_options(kernel: Any, options: tuple[tuple[str, Any], ...], capability: tuple[int, int], on: str) -> None:
    """Raise LaunchError for options of launch() that are wrong, or that a GPU of this compute capability does not have."""
    if not options:
        return
    asked, name = dict(options), kernel.fn.__name__
    registers = asked.get("maxnreg")
    if registers is not None and not (isinstance(registers, int) and 0 < registers < 256):
        raise LaunchError(f"launch {name}: maxnreg is {registers!r}; a thread has 1 to 255 registers")
    blocks, has = asked.get("num_ctas", 1), f"{on} has {capability[0]}.{capability[1]}"
    if blocks not in (1, 2, 4, 8, 16):
        raise LaunchError(f"launch {name}: num_ctas is {blocks}; a cluster has 1, 2, 4, 8 or 16 blocks")
    if capability < (9, 0) and blocks != 1:
        raise LaunchError(
            f"launch {name}: clusters (num_ctas={blocks}) need compute capability 9.0 or later, {has}; launch it with num_ctas=1"
        )
    if capability < (9, 0) and asked.get("launch_pdl"):
        raise LaunchError(f"launch {name}: launch_pdl needs compute capability 9.0 or later, {has}; launch a kernel that does not wait")


# What every Triton version is asked for beside a specialization: multiply-adds fuse, and libdevice keeps subnormal float32 numbers, as
# nvcc does, where Triton's own setting takes them for zero (log(1e-40) would be -inf).
ARITHMETIC = (("enable_fp_fusion", True), ("enable_reflect_ftz", False))


class Specialization(NamedTuple):
    """Everything a compiled kernel depends on, hashable: one compilation serves all launches with an equal one.

    `types` has a leaf per parameter, nested as its tuples are (FieldTypes for those with names): a Triton type ("*bf16", "i32"), with ":16" behind it where
    the address or the integer divides by 16, or "constexpr". `constants` are the (path, value) pairs of the constexpr
    leaves; `typed` tells 1, True and 1.0 apart, which are equal to Python. `options` are what launch() takes beside warps and stages.
    """

    kernel: Any
    types: tuple[Any, ...]
    constants: tuple[tuple[tuple[int, ...], Any], ...]
    typed: tuple[Any, ...]
    num_warps: int
    num_stages: int
    options: tuple[tuple[str, Any], ...] = ()


class FieldTypes(tuple[Any, ...]):
    """The types of a named tuple's members. Other fields are another specialization, which tuples alone do not tell apart."""

    fields: tuple[str, ...]

    @classmethod
    def of(cls, fields: tuple[str, ...], types: Iterable[Any]) -> FieldTypes:
        made = cls(types)
        made.fields = fields
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldTypes) and self.fields == other.fields and tuple(self) == tuple(other)

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return f"{self.fields}: {tuple(self)!r}"


@cache
def _pointer_types(dtype: np.dtype) -> tuple[str, str]:
    """The Triton types of an array argument: at an address that does not divide by 16, and at one that does."""
    name = f"*{dtypes.of(dtype).triton}"
    return name, name + ":16"


def specialize(call: LaunchCall) -> tuple[Specialization, list[tuple[str, Any]]]:
    """The specialization of a launch, and its run-time values (type, value) in the order the compiled kernel takes them: ("*", array),
    (DESCRIPTOR, descriptor), (type, number). Raises DeviceError when its arrays are on several GPUs.

    A Python int is a size or a stride: whether it divides by 16 decides the width of accesses, so it is compiled in, unless the
    kernel declares the parameter do_not_specialize. A numpy scalar (a seed, an offset, a label) is a plain number.
    """
    kernel = call.kernel
    found = _Collected([], [], call.plan.plain, kernel.fn.__name__)
    bound = bind(call)
    types = tuple([_leaf_type(found, v, (i,), p) for i, (p, v) in enumerate(bound)])
    arrays = arrays_of(found.values)
    for x in arrays[1:]:
        if x.storage.device is not arrays[0].storage.device:  # a GPU's device is nearly always one object
            check_one_device(kernel, bound)
    typed = tuple([_types_of(v) for _, v in found.constants])
    return Specialization(kernel, types, tuple(found.constants), typed, call.num_warps, call.num_stages, call.options), found.values


class _Collected(NamedTuple):
    """What specialize() collects on its way through the arguments. `plain`: see Plan."""

    constants: list[tuple[tuple[int, ...], Any]]
    values: list[tuple[str, Any]]
    plain: frozenset[str]
    kernel: str


# A function of its own: nested in specialize() it would be a reference cycle, which keeps the arrays until the collector runs.
def _leaf_type(found: _Collected, value: Any, path: tuple[int, ...], parameter: Parameter) -> Any:
    """The type of an argument; its value is added to what was found."""
    if parameter.constexpr or value is None:
        found.constants.append((path, value))
        return "constexpr"
    if type(value) is Constant:
        found.constants.append((path, value.value))
        return "constexpr"
    values = found.values
    # not isinstance: True is no size
    if type(value) is int:
        kind = parameter.type or ("i32" if -(2**31) <= value < 2**31 else scalar_type(value, parameter.name, found.kernel))
        values.append((kind, value))
        return kind + ":16" if value % 16 == 0 and parameter.name not in found.plain and kind[0] in "iu" and kind != "i1" else kind
    if isinstance(value, tuple):
        types = tuple([_leaf_type(found, v, (*path, i), parameter) for i, v in enumerate(value)])
        return FieldTypes.of(value._fields, types) if hasattr(value, "_fields") else types
    if is_array(value):
        address = value.data_ptr()
        values.append(("*", value))
        return _pointer_types(value.dtype)[address % 16 == 0]
    if type(value) is TensorDescriptor:
        values.append((DESCRIPTOR, value))
        return value.type
    kind = parameter.type or scalar_type(value, parameter.name, found.kernel)
    values.append((kind, value))
    return kind


def _types_of(value: Any) -> Any:
    if not isinstance(value, tuple):
        return type(value)
    members = tuple([_types_of(v) if isinstance(v, tuple) else type(v) for v in value])
    return (value._fields, members) if hasattr(value, "_fields") else members
