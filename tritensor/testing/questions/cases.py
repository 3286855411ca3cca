"""Cases: one (op, sample, dtype, layout, device), its inputs cast, promoted and placed as dispatch would hand them to a corner."""

from __future__ import annotations

import contextlib
import traceback
import zlib
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.ground import dtypes
from tritensor.ground.device import cpu, device
from tritensor.ground.errors import ArgumentError, GradError
from tritensor.ops.array import Array, CudaArray, to_host
from tritensor.ops.table import Op, Sample
from tritensor.tensor.core import Tensor
from tritensor.testing.questions import corners
from tritensor.testing.questions.layouts import STRIDED, Placed, broadcasts, place, reshape_inputs
from tritensor.testing.questions.tolerance import wide

LONG = 1200  # elements beyond which a sample is there for its long sums, which have no layout


def samples(op: Op) -> list[Sample]:
    """The op's samples, the same in every process; numpy's scalars among the inputs as 0-d arrays."""
    try:
        found = op.samples(np.random.default_rng(zlib.crc32(op.name.encode())))  # hash() differs between processes
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(at.filename).name}:{at.lineno}: {at.line}"
        raise ArgumentError(f"{op.name}: samples raises {type(error).__name__}: {error} ({where}); mend samples, and ask again") from error
    whole = [tuple(np.asarray(x) if isinstance(x, np.generic) else x for x in s.inputs) for s in found]
    return [Sample(*inputs, smooth=s.smooth, in_c_order=s.in_c_order, **s.attrs) for inputs, s in zip(whole, found, strict=True)]


def is_floating(x: Any) -> bool:
    """True where x is an array of a floating type."""
    return hasattr(x, "dtype") and dtypes.of(np.dtype(x.dtype)).kind in ("float", "float8")


def name_input(op: Op, i: int) -> str:
    """What input i is called: of a variadic op the last name stands for all that follow."""
    return op.inputs[min(i, len(op.inputs) - 1)]


def cast(x: Any, dtype: str) -> Any:
    """A sample's input in the type under test: only float64 arrays change, everything else was chosen by the sample."""
    if not (isinstance(x, np.ndarray) and x.dtype == np.float64):
        return x
    found = dtypes.as_dtype(dtype)
    if found.kind in ("float", "float8"):
        with np.errstate(over="ignore"):
            return x.astype(found.numpy)
    if found.kind == "bool":
        return np.asarray(x > 0)
    whole = np.rint(3 * np.nan_to_num(x, posinf=30.0, neginf=-30.0))  # 3: samples are around 1, which would leave three integers
    whole = np.where(whole == 0, 1, whole)  # a divisor stays one
    return np.asarray((np.abs(whole) if found.kind == "uint" else whole).clip(-100, 100)).astype(found.numpy)


def promote_inputs(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs as dispatch casts them before it calls the op."""
    if op.promote is None:
        return inputs
    if not any(isinstance(x, np.ndarray) for x in inputs):
        return inputs
    common = dtypes.result_type(inputs)
    if op.promote == "float" and dtypes.of(common).kind not in ("float", "complex"):
        common = dtypes.default_float().numpy
    return tuple(x.astype(common) if isinstance(x, np.ndarray) else x for x in inputs)


class Case:
    """One call of one op. `values` are the inputs on the host in C order, `wide` the same in float64."""

    def __init__(self, op: Op, index: int, sample: Sample, dtype: str, layout: str, on: device) -> None:
        self.op = op
        self.index = index
        self.sample = sample
        self.dtype = dtype
        self.layout = layout
        self.on = on
        inputs = promote_inputs(op, tuple(cast(x, dtype) for x in sample.inputs))
        if layout not in STRIDED:
            inputs = reshape_inputs(inputs, layout) or inputs
        self.given = inputs
        # What the layout makes of them: broadcasting repeats the first slice.
        self.values = tuple(to_host(self.place(x, cpu).array).copy() if isinstance(x, np.ndarray) else x for x in inputs)
        self.smooth = sample.smooth and layout not in ("broadcast",)  # equal values along an axis tie

    def __repr__(self) -> str:
        return f"{self.op.name}/{self.index}/{self.dtype}/{self.layout}/{self.on.type}"

    def place(self, x: np.ndarray, on: device) -> Placed:
        """An input in this case's layout (inputs that an op overwrites cannot have stride 0)."""
        layout = self.layout if self.layout in STRIDED else "plain"
        if layout == "broadcast" and self.op.mutates:
            layout = "plain"
        return place(x, layout, on)

    def placed(self) -> list[Any]:
        """Fresh inputs on the case's device, in its layout."""
        return [self.place(x, self.on) if isinstance(x, np.ndarray) else x for x in self.given]

    def attrs(self, on: device | None = None) -> dict[str, Any]:
        """The sample's attributes; ops without inputs are told the device."""
        found = dict(self.sample.attrs)
        if "device" in self.op.attrs:
            found["device"] = on or self.on
        return found

    @cached_property
    def wide(self) -> tuple[Any, ...]:
        return tuple(wide(x) if is_floating(x) else x for x in self.values)

    @cached_property
    def truth(self) -> tuple[np.ndarray, ...]:
        """Outputs of the float64 reference."""
        return outputs(self.op, self.op.reference, tuple(copy_inputs(self.wide)), self.attrs(cpu))

    @cached_property
    def expected(self) -> tuple[np.ndarray, ...]:
        """What the CPU gives in the type under test, on plain C-ordered inputs."""
        return outputs(self.op, self.op.cpu, tuple(copy_inputs(self.values)), self.attrs(cpu))

    @cached_property
    def wanted(self) -> tuple[np.ndarray, ...]:
        """`truth`, rounded once to the types that the op gives."""
        with np.errstate(all="ignore"):
            return tuple(np.asarray(t).astype(e.dtype, copy=False) for t, e in zip(self.truth, self.expected, strict=True))

    @cached_property
    def made(self) -> tuple[Placed, ...]:
        """Outputs of the forward corner on the case's device, as the case's inputs lie: what the backward is given of an op with residuals."""
        function = self.op.cpu if self.on.type == "cpu" else self.op.forward or self.op.host
        given = tuple(x.array if isinstance(x, Placed) else x for x in self.placed())
        found = outputs(self.op, function, given, self.attrs())
        return tuple(Placed(x, x, to_host(x).copy().reshape(-1).view(np.uint8)) for x in found)

    @cached_property
    def needs(self) -> tuple[bool, ...]:
        """Which inputs can have a gradient: floats, less those for which the rule itself says that there is none."""
        return tuple(is_floating(x) and not self._is_refused(i) for i, x in enumerate(self.values))

    def _is_refused(self, i: int) -> bool:
        rule = self.op.rule
        if rule is None or not rule.joint or "needs" not in rule.names[0] or sum(map(is_floating, self.values)) < 2:
            return False
        alone = tuple(k == i for k in range(len(self.values)))  # rules refuse one gradient and give the others
        inputs, made = (tuple(Tensor.wrap(x) if isinstance(x, np.ndarray) else x for x in xs) for xs in (self.wide, self.truth))
        g = tuple(Tensor.wrap(np.zeros(x.shape, x.dtype)) if is_floating(x) else None for x in self.truth[: self.op.public])
        try:
            with no_grad():
                corners.call(self.op, rule, g if self.op.public > 1 else g[0], inputs, made, self.attrs(cpu), alone)
        except GradError as e:
            return "has no gradient" in str(e)
        return False


def copy_inputs(values: tuple[Any, ...]) -> list[Any]:
    """Copies of the arrays among `values`."""
    return [x.copy() if isinstance(x, np.ndarray) else x for x in values]


def outputs(op: Op, function: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Array, ...]:
    """Call a forward corner and return its outputs as a tuple of arrays; for an op that mutates, the arrays it wrote."""
    with np.errstate(all="ignore"), poisoned_empty():
        out = function(*inputs, **attrs)
    if op.mutates:
        return tuple(inputs[op.inputs.index(m)] for m in op.mutates if inputs[op.inputs.index(m)] is not None)
    out = out if isinstance(out, tuple | list) else (out,)
    for x in out:
        if not isinstance(x, np.ndarray | np.generic | CudaArray):
            raise TypeError(
                f"{getattr(function, 'name', '') or 'a corner'} of {op.name} returned {_describe(x)}; it returns an array for each of {op.outputs}"
            )
    return tuple(np.asarray(x) if isinstance(x, np.generic) else x for x in out)


def _describe(x: Any) -> str:
    """What a corner returned in place of an array."""
    return "a Tensor (its .numpy() is one)" if isinstance(x, Tensor) else "None" if x is None else f"a {type(x).__name__}"


@contextlib.contextmanager
def poisoned_empty() -> Iterator[None]:
    """numpy.empty and empty_like hand out poison, so that an element never written shows on the CPU as well."""
    numpy: Any = np  # its stubs call these names final
    empty, empty_like = numpy.empty, numpy.empty_like

    def poison_results(make: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        def poisoned(*args: Any, **kwargs: Any) -> np.ndarray:
            out = make(*args, **kwargs)
            if out.flags.c_contiguous and type(out) is np.ndarray and out.size and out.dtype.kind != "O":  # objects are pointers
                out.reshape(-1).view(np.uint8)[...] = 0xFF if out.dtype.kind != "b" else 1  # all ones: NaN of every floating type, or -1
            return out

        return poisoned

    numpy.empty, numpy.empty_like = poison_results(empty), poison_results(empty_like)
    try:
        yield
    finally:
        numpy.empty, numpy.empty_like = empty, empty_like  # every library of the process sees the poisoned ones until here


@lru_cache(maxsize=4096)
def types(op: Op) -> tuple[str, ...]:
    """Types to walk: one alone where no sample holds an input whose type could change."""
    varies = any(getattr(x, "dtype", None) == "float64" for s in samples(op) for x in s.inputs)
    return op.dtypes if varies else op.dtypes[:1]


def variants(op: Op, sample: Sample, dtype: str) -> list[str]:
    """Layouts worth asking for one sample: all in float32 (or the op's only type), as is and one strided elsewhere; fewer of a long one."""
    arrays = [x for x in sample.inputs if isinstance(x, np.ndarray)]
    if not arrays or sample.in_c_order:
        return ["plain"]
    full = dtype == "float32" or "float32" not in op.dtypes
    if any(x.size > LONG for x in arrays):
        return ["plain", "sliced"] if full else ["plain"]
    # A type changes nothing about strides, which float32 asks.
    layouts = ["plain", "sliced"] if not full else ["plain", "transposed", "sliced", "reversed"]
    if not full or op.mutates:
        return layouts
    if any(x.ndim > 2 for x in arrays):  # of two dimensions it is transposed
        layouts.append("rotated")
    if any(broadcasts(x) for x in arrays):
        layouts.append("broadcast")
    if op.broadcasts:
        layouts += [k for k in ("empty", "zerodim") if reshape_inputs(sample.inputs, k) is not None]
    return layouts


def cases(op: Op, dtype: str, on: device, layouts: Callable[[Op, int, Sample, str], list[str]] | None = None) -> list[Case]:
    """All calls of an op in one type on one device, in all variants or those that `layouts` names for a sample and its place.

    Complex numbers, given or to come out, are there on the CPU alone.
    """
    found = [
        Case(op, i, s, dtype, layout, on)
        for i, s in enumerate(samples(op))
        for layout in (variants(op, s, dtype) if layouts is None else layouts(op, i, s, dtype))
    ]
    return found if on.type == "cpu" else [c for c in found if not any(x.dtype.kind == "c" for x in (*_arrays(c), *c.expected))]


def _arrays(case: Case) -> list[np.ndarray]:
    return [x for x in case.values if isinstance(x, np.ndarray)]
