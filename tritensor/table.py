"""The op table: the record of an op with its four corners, registration that checks the whole record, and look-up by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tritensor.errors import RegistrationError, ShapeError
from tritensor.registration import names_of, problems_of, read_signature
from tritensor.replay import Corner, bare

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("uint8", "int8", "int16", "int32", "int64")


class Spec(NamedTuple):
    """Shape and numpy dtype of an array that does not exist yet: what a shape rule returns."""

    shape: tuple[int, ...]
    dtype: np.dtype


class Work(NamedTuple):
    """What one call must do at least: floating point operations, and bytes read plus written."""

    flops: int
    bytes: int


class Sample:
    """One call of an op for tests or benchmarks: positional inputs (numpy arrays, Python scalars, None) and attributes.

    Floating arrays are drawn in float64; the test harness casts them to the type under test. `smooth=False` marks a
    point where finite differences do not exist (a kink, a tie): values are compared there, derivatives are not.
    """

    __slots__ = ("attrs", "inputs", "smooth")

    def __init__(self, *inputs: Any, smooth: bool = True, **attrs: Any) -> None:
        self.inputs = inputs
        self.attrs = attrs
        self.smooth = smooth

    def __repr__(self) -> str:
        shown = [f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in self.inputs]
        return f"Sample({', '.join(shown + [f'{k}={v!r}' for k, v in self.attrs.items()])})"


class Partials(NamedTuple):
    """A gradient corner in normal form: one joint function, or one function per input, each with the names it asks for.

    `fetches` says for every name where a node holds it: ("input", 0), ("output", 1), ("attr", "dim"), ("shape", 0),
    ("dtype", 0), ("inputs" | "shapes" | "dtypes", first of the variadic ones), ("needs", None).
    `steps` joins per function: its place among the inputs, the function, its fetches, and for the engine's short cut
    the place of the one input that it names (-1 when it names nothing, -2 when there is more to fetch).
    """

    functions: tuple[Callable[..., Any] | None, ...]
    names: tuple[tuple[str, ...], ...]
    joint: bool
    fetches: tuple[tuple[tuple[str, Any], ...], ...] = ()
    steps: tuple[tuple[int, Any, tuple[tuple[str, Any], ...], int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Op:
    """One op: {forward, backward} x {Triton kernel, plain mathematics}, and what tests and benchmarks need of it.

    Built by `op(...)`, which documents the fields. `inputs`, `attrs`, `required`, `variadic` are read off the
    signature of `reference`; the `Partials` are the gradient corners in normal form.
    """

    name: str
    reference: Callable[..., Any]
    shape: Callable[..., Any]
    forward: Callable[..., Any] | None
    rule: Partials | None
    backward: Partials | None
    reference_backward: Partials | None
    outputs: tuple[str, ...]
    residuals: tuple[str, ...]
    mutates: tuple[str, ...]
    view: bool
    broadcasts: bool
    promote: str | None
    into: bool
    reports: bool
    dtypes: tuple[str, ...]
    samples: Callable[[np.random.Generator], Sequence[Sample]]
    sizes: Callable[[np.random.Generator], Sequence[Sample]] | None
    work: Callable[..., Work] | None
    tolerance: dict[str, tuple[float, str]]
    inputs: tuple[str, ...]
    required: int
    variadic: bool
    attrs: dict[str, Any]
    doc: str
    module: str
    public: int  # how many outputs the caller sees
    keep_cache: dict[tuple[bool, ...], tuple[tuple[bool, ...], tuple[bool, ...], bool]] = field(default_factory=dict)

    @property
    def differentiable(self) -> bool:
        return self.rule is not None

    def keep(self, needs: tuple[bool, ...]) -> tuple[tuple[bool, ...], tuple[bool, ...], bool]:
        """What a node must hold when the inputs flagged in `needs` want gradients.

        Returns a flag per input (a variadic input has one), a flag per output, and whether shapes are asked for.
        """
        found = self.keep_cache.get(needs)
        if found is None:
            asked: set[str] = set()
            for corner in (self.rule, self.backward, self.reference_backward):
                if corner is None:
                    continue
                for i, names in enumerate(corner.names):
                    if corner.joint or (i < len(needs) and needs[i]):
                        asked.update(names)
            shapes = self.broadcasts or any(n.endswith(("_shape", "_dtype")) and n not in self.attrs for n in asked)
            found = (tuple(n in asked for n in self.inputs), tuple(n in asked for n in self.outputs), shapes)
            self.keep_cache[needs] = found
        return found


registry: dict[str, Op] = {}


def _partials(corner: Any) -> Partials | None:
    if corner is None:
        return None
    if isinstance(corner, tuple):
        functions = tuple(map(bare, corner))
        return Partials(functions, tuple(names_of(f) if f is not None else () for f in functions), joint=False)
    return Partials((bare(corner),), (names_of(bare(corner)),), joint=True)


def op(
    name: str,
    reference: Callable[..., Any],
    *,
    shape: Callable[..., Any],
    samples: Callable[[np.random.Generator], Sequence[Sample]],
    forward: Callable[..., Any] | None = None,
    rule: Any = None,
    backward: Any = None,
    reference_backward: Any = None,
    inputs: tuple[str, ...] | None = None,
    outputs: tuple[str, ...] = ("y",),
    residuals: tuple[str, ...] = (),
    mutates: tuple[str, ...] = (),
    view: bool = False,
    differentiable: bool = True,
    broadcasts: bool = False,
    promote: str | None = None,
    into: bool = False,
    reports: bool = False,
    dtypes: tuple[str, ...] = FLOATS,
    sizes: Callable[[np.random.Generator], Sequence[Sample]] | None = None,
    work: Callable[..., Work] | None = None,
    tolerance: dict[str, tuple[float, str]] | None = None,
    doc: str = "",
) -> Op:
    """Register an op. The whole record is checked first; RegistrationError lists everything that is wrong with it.

    Args:
        name: what `ops.<name>` and error messages call it; unique.
        reference: `(*arrays, *, attributes) -> array or tuple`, numpy. Its signature is the op's signature: arrays
            positional (optional ones default to None, a last `*xs` takes any number), attributes keyword-only.
        shape: same signature, returns a Spec (or a tuple of them); the only place that refuses shapes and dtypes.
        forward: same signature over CudaArrays, launches the kernel. Not given for a view.
        rule: the gradient in tritensor's own ops: `(g, *named) -> gradient` (a tuple for several inputs, None where
            there is none), or a tuple with one such function per input. What it names is what the engine keeps:
            inputs, outputs, attributes, `<input>_shape`, `<input>_dtype`, and `needs` (a bool per input).
            With several public outputs `g` is a tuple.
        backward: the same over CudaArrays, launches the backward kernel.
        reference_backward: the same in numpy, where the rule op by op would be slow.
        inputs: names for the inputs where reference has no signature to read (a numpy ufunc).
        outputs: names of the outputs; `residuals` are those of them that only `backward` uses (log-sum-exp) and no
            caller sees.
        mutates: inputs that are overwritten in place (optimizer steps); such an op returns nothing, has no gradient.
        view: reference returns a view and serves every device.
        differentiable: False says on purpose that there is no gradient (comparisons, argmax).
        broadcasts: inputs follow numpy broadcasting; the engine sums gradients back to each input's shape.
        promote: None (types as given), "same" (inputs cast to their common type), "float" (and integers to floating).
        into: reference and forward take `out=`, an array to write to.
        reports: forward's kernel reports bad values through the device's error words (see kernels/reporting.py).
        dtypes: names of the types that tests walk.
        samples: `(rng) -> [Sample, ...]`, small calls that together reach every path.
        sizes: `(rng) -> [Sample, ...]`, calls worth timing; `work` counts flops and bytes of one.
        tolerance: {"dtype": (relative tolerance, reason)}: overrides of the test table.
    """
    problems: list[str] = []
    if not callable(reference):
        raise RegistrationError(f"op {name!r} was not registered:\n  - reference is {reference!r}; give the op as a numpy function")
    if name in registry:
        problems.append(f"the name is taken by {registry[name].module}; choose another")
    if not name.isidentifier():
        problems.append("the name must be a Python identifier")
    if inputs is None:
        read_inputs, required, variadic, attrs = read_signature(reference, problems)
    else:
        read_inputs, required, variadic, attrs = inputs, len(inputs), False, {}
    record = Op(
        name=name, reference=reference, shape=shape, forward=bare(forward), rule=_partials(rule), backward=_partials(backward),
        reference_backward=_partials(reference_backward), outputs=() if mutates else outputs, residuals=residuals, mutates=mutates,
        view=view, broadcasts=broadcasts, promote=promote, into=into, reports=reports, dtypes=dtypes, samples=samples, sizes=sizes, work=work,
        tolerance=tolerance or {}, inputs=read_inputs, required=required, variadic=variadic, attrs=attrs, doc=doc or (reference.__doc__ or ""),
        module=getattr(reference, "__module__", "") or "", public=0 if mutates else len(outputs) - len(residuals),
    )  # fmt: skip
    problems += problems_of(record, differentiable)
    if problems:
        raise RegistrationError(f"op {name!r} was not registered:\n" + "\n".join(f"  - {p}" for p in problems))
    corners: dict[str, Any] = {k: _place(getattr(record, k), record) for k in ("rule", "backward", "reference_backward")}
    record = replace(record, **corners | _recorded(record.forward, corners["backward"], record))
    registry[name] = record
    return record


def _recorded(forward: Any, backward: Partials | None, record: Op) -> dict[str, Any]:
    """The two corners that launch kernels, which are recorded once and replayed (see replay.py)."""
    found: dict[str, Any] = {}
    if forward is not None:
        found["forward"] = Corner(
            forward, f"{record.name} forward",
            draws=() if "seed" in record.attrs else None, mutates=bool(record.mutates), reports=record.reports, alike=record.promote is not None,
        )  # fmt: skip
    if backward is not None:
        label = f"{record.name} backward"
        functions = tuple(
            [
                None
                if f is None
                else Corner(f, label, draws=(1 + names.index("seed"), 1 + names.index("offset")) if "seed" in names else None)
                for f, names in zip(backward.functions, backward.names, strict=True)
            ]
        )
        steps = tuple([(i, functions[i], fetches, place) for i, _, fetches, place in backward.steps])
        found["backward"] = backward._replace(functions=functions, steps=steps)
    return found


def _place(corner: Partials | None, record: Op) -> Partials | None:
    """The corner with `fetches` filled in."""
    if corner is None:
        return None
    last = len(record.inputs) - 1

    def place(n: str) -> tuple[str, Any]:
        if n == "needs":
            return "needs", None
        if n in record.attrs:
            return "attr", n
        if n in record.outputs:
            return "output", record.outputs.index(n)
        base, _, what = n.rpartition("_")
        kind, i = ("input", record.inputs.index(n)) if n in record.inputs else (what, record.inputs.index(base))
        return (kind + "s" if record.variadic and i == last else kind), i

    fetches = tuple(tuple(place(n) for n in names) for names in corner.names)
    direct = [-1 if not f else f[0][1] if len(f) == 1 and f[0][0] == "input" else -2 for f in fetches]
    return corner._replace(fetches=fetches, steps=tuple(zip(range(len(fetches)), corner.functions, fetches, direct, strict=True)))


def broadcast(name: str, *shapes: tuple[int, ...], labels: Sequence[str] = ("a", "b", "c")) -> tuple[int, ...]:
    """The numpy broadcast of shapes; raises ShapeError naming the op, the operands and the sizes that disagree."""
    out: list[int] = []
    for k in range(1, max(map(len, shapes), default=0) + 1):
        size = 1
        for s in shapes:
            if len(s) >= k and s[-k] != 1:
                if size not in (1, s[-k]):
                    given = ", ".join(f"{label} {s}" for label, s in zip(labels, shapes, strict=False))
                    raise ShapeError(f"{name}: {given}: sizes {size} and {s[-k]} at dim -{k} do not broadcast; they must be equal or 1")
                size = s[-k]
        out.append(size)
    return tuple(reversed(out))


def normal_dim(name: str, dim: int, ndim: int) -> int:
    """A dimension counted from the front; raises IndexError naming op, dim and range. A 0-d tensor has dims -1 and 0."""
    span = max(ndim, 1)
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer):
        raise TypeError(f"{name}: dim {dim!r} is not an integer")
    if not -span <= dim < span:
        raise IndexError(f"{name}: dim {dim} is out of range for a {ndim}-dimensional tensor; it has dims {-span} to {span - 1}")
    return int(dim) % span


def normal_dims(name: str, dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front, sorted; None means all. Raises on a repeated one."""
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, int | np.integer):
        return (normal_dim(name, dim, ndim),) if ndim else (normal_dim(name, dim, ndim),)[:0]
    dims = sorted(normal_dim(name, d, ndim) for d in dim)
    if len(set(dims)) != len(dims):
        raise ShapeError(f"{name}: dim {tuple(dim)} names a dimension twice")
    return tuple(dims) if ndim else ()


class Ops:
    """Look-up of ops by name at call time: `ops.softmax(x, dim=-1)`. Dispatch binds a record at its first use.

    A name that is not in the table is looked for in installed packages: entry points of the group "tritensor.ops" name
    modules that register ops when they are imported. They are read once, at the first such name.
    """

    bind: Callable[[Op], Callable[..., Any]]
    plugins_read = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in registry and not name.startswith("__") and not Ops.plugins_read:
            from importlib.metadata import entry_points

            Ops.plugins_read = True
            for entry in entry_points(group="tritensor.ops"):
                entry.load()
        if name not in registry:
            near = difflib.get_close_matches(name, registry, 1)
            raise AttributeError(f"ops: no op is called {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        bound = type(self).bind(registry[name])
        self.__dict__[name] = bound
        return bound


ops = Ops()
