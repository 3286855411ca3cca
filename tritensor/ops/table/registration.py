"""Registration of an op: `op(...)` checks the whole record at once and puts it into the table."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from tritensor.ground.errors import RegistrationError
from tritensor.ground.process.locks import being_imported
from tritensor.ground.strides import CONTIGUOUS, ELEMENTWISE, OWN
from tritensor.ops.replay import Corner, unwrap_corner
from tritensor.ops.table import lookup
from tritensor.ops.table.checks import corner_problems, find_borrowed, find_problems, list_forms
from tritensor.ops.table.formula_checks import as_tuple
from tritensor.ops.table.host_fallback import on_host
from tritensor.ops.table.lookup import registry
from tritensor.ops.table.owner import Owner, owner_in_library, owner_of_caller
from tritensor.ops.table.plain_cpu import plain_cpu
from tritensor.ops.table.record import FLOATS, Op, Partials, Sample, Work
from tritensor.ops.table.signature import parameter_names, read_signature


def _default_layout(own: bool, broadcasts: bool) -> str:
    return OWN if own else ELEMENTWISE if broadcasts else CONTIGUOUS


def _make_partials(corner: Any, inputs: tuple[str, ...], variadic: bool) -> Partials | None:
    if corner is None:
        return None
    if len(inputs) == 1 and not variadic and not isinstance(corner, tuple):
        corner = (corner,)  # the function of all inputs is that of the one
    if isinstance(corner, tuple):
        functions = tuple(map(unwrap_corner, corner))
        return Partials(functions, tuple(parameter_names(f) if f is not None else () for f in functions), joint=False)
    return Partials((unwrap_corner(corner),), (parameter_names(unwrap_corner(corner)),), joint=True)


def fill_conditions(given: Any, elementwise: bool) -> tuple[Any, Any]:
    """The conditioning of outputs and of gradients, with what goes without saying filled in."""
    if isinstance(given, tuple):
        return given  # type: ignore[return-value]
    return (given or ("element" if elementwise else "measured")), "absolute" if given == "absolute" else "measured"


def op(
    name: str,
    reference: Callable[..., Any],
    *,
    shape: Callable[..., Any],
    samples: Callable[[np.random.Generator], Sequence[Sample]],
    forward: Callable[..., Any] | None = None,
    rule: Any = None,
    backward: Any = None,
    cpu: Callable[..., Any] | None = None,
    cpu_backward: Any = None,
    inputs: tuple[str, ...] | None = None,
    outputs: tuple[str, ...] = ("y",),
    residuals: tuple[str, ...] = (),
    mutates: tuple[str, ...] = (),
    borrows: tuple[str, ...] | None = None,
    view: bool = False,
    differentiable: bool = True,
    layout: str | None = None,
    broadcasts: bool = False,
    promote: str | None = None,
    into: bool = False,
    reports: bool = False,
    holomorphic: bool = True,
    autocast: str | dict[str, str] | None = None,
    host: bool = False,
    dtypes: tuple[str, ...] = FLOATS,
    sizes: Callable[[np.random.Generator], Sequence[Sample]] | None = None,
    work: Callable[..., Work] | None = None,
    configs: Callable[[tuple[Any, ...]], Sequence[Any]] | None = None,
    tolerance: dict[str, tuple[float, str]] | None = None,
    condition: Any = None,
    doc: str = "",
    public: bool | str | Sequence[str] = (),
    replace: bool = False,
) -> Op:
    """Register an op. The whole record is checked first; RegistrationError lists everything that is wrong with it.

    Args:
        name: what `ops.<name>` and error messages call it; unique.
        reference: `(*arrays, *, attributes) -> array or tuple`, plain numpy: the truth that kernels are held to, never optimised. It is asked in float64; where
            no `cpu` is given, users run it, too, of 16-bit floats in float32. Its signature is the op's signature: arrays
            positional (optional ones default to None, a last `*xs` takes any number), attributes keyword-only.
        shape: same signature, returns a Spec (or a tuple of them); the only place that refuses shapes and dtypes.
        forward: same signature over CudaArrays, launches the kernel. Not given for a view.
        rule: the gradient in tritensor's own ops: `(g, *named) -> gradient` (a tuple for several inputs, None where
            there is none), or a tuple with one such function per input. What it names is what the engine keeps:
            inputs, outputs, attributes, `<input>_shape`, `<input>_dtype`, and `needs` (a bool per input).
            With several public outputs `g` is a tuple.
        backward: the same over CudaArrays, launches the backward kernel.
        cpu: same signature as forward over numpy arrays, where the CPU can do better than reference: blocks that fit the cache, BLAS, machine code. The
            tests hold it to reference. Left out, reference runs.
        cpu_backward: backward over numpy arrays, where the rule op by op would be slow on the CPU. The tests hold it to the rule.
        inputs: names for the inputs where reference has no signature to read (a numpy ufunc).
        outputs: names of the outputs; `residuals` are those of them that only `backward` uses (log-sum-exp) and no
            caller sees.
        mutates: inputs that are overwritten in place (optimizer steps); such an op returns nothing, has no gradient.
        borrows: inputs and outputs that a gradient names though PyTorch's node keeps something else in their stead, so that its users may write over
            them before backward: the first write leaves the node a copy. Of other names that were written backward raises. With `host` all are borrowed
            unless it says otherwise: LAPACK keeps copies in its own order.
        view: reference returns a view and serves every device.
        layout: how the result lies in memory, on every device (see strides.py). "elementwise": as the inputs do, the default where
            `broadcasts`; "backwards": so, too, the last of them asked first. "contiguous": in C order, the default elsewhere. "images": channels
            last where the first input's are. "own": what the op says, the default of views and of ops that mutate.
        differentiable: False says on purpose that there is no gradient (comparisons, argmax).
        broadcasts: inputs follow numpy broadcasting; the engine sums gradients back to each input's shape.
        promote: None (types as given), "same" (inputs cast to their common type), "float" (and integers to floating).
        into: forward and cpu take `out=`, an array to write to; where cpu is left out, that is seen to.
        reports: forward's kernel reports bad values through the device's error record (see kernels/parts/indices/error_reports.py).
        holomorphic: how the rule serves complex numbers. True: it is written as for real ones, g times the derivative, and the engine
            conjugates g before it and the gradient after it, which is right for functions that are differentiable in the complex sense.
            False: the rule itself gives PyTorch's gradient, dL/d(re x) + i dL/d(im x), as that of |x| must.
        autocast: what autocast does to floating inputs of fewer than eight bytes. "lower": they go down to its type (products, convolutions).
            "float32": 16-bit ones go up to float32. "widest": all to the widest among them. None: nothing. {"cpu": ..., "cuda": ...} tells devices apart.
        host: there is no kernel and none would pay: on a GPU the arrays are copied to the host, reference runs there, and the result is
            copied back, which a warning says once (see host_fallback.py). Such an op has no forward and no backward: its rule runs.
        dtypes: names of the types that tests walk.
        samples: `(rng) -> [Sample, ...]`, small calls that together reach every path.
        sizes: `(rng) -> [Sample, ...]`, calls worth timing; `work` counts flops and bytes of one.
        configs: `(key) -> configs` worth trying, for `tritensor tune`, where a corner asks `tritensor.tuning.config_of(name, key, default)` for one.
        tolerance: {"dtype": (relative tolerance, reason)}: overrides of the test table.
        condition: what the roundings of an element are measured against in tests, for outputs and for gradients (one, or two in
            a tuple). "element": itself (the default for outputs where inputs broadcast). "absolute": the reference, or the rule,
            of absolute values, where that is a sum of products. "measured": how far small relative changes of the inputs move
            it (the default elsewhere). A function gives scales itself: of reference's signature, or `(g, inputs, attrs)`. A third
            word, "stored", says that the op rounds to the type in memory on its way, a state at each step, not only its results.
        doc: one line on what it computes; reference's own docstring where none is given. `help(tritensor.ops.<name>)` shows it.
        public: its public forms, made of the record with reference's signature: "function" (`tritensor.<name>(...)`), "method" (`x.<name>(...)` of
            the first input), "inplace" (`x.<name>_(...)`, which writes the one result over x), "out" (the function and the method take `out=`).
            True: all that make sense for it, which for an op that is not elementwise leaves "inplace" out. A name that somebody has is refused.
        replace: an op of that name, the library's own too, gives way to this one, and so does what else has one of its public names: `ops.<name>`,
            operators, functions that call it, and recorded launches serve the new record from the next call on. `tritensor.table.restore(name)`
            puts the first one back. What stays as it was: graphs that were recorded (they run the old gradient), captured CUDA graphs, a bound
            `f = ops.<name>` that was kept in a variable, ops that were made of the old one's corners, and rules that go by the name (vmap, jvp), so
            a replacement keeps the inputs, attributes and meaning of what it replaces.
    """
    problems: list[str] = []
    if not callable(reference):
        raise RegistrationError(f"op {name!r} was not registered:\n  - reference is {reference!r}; give the op as a numpy function")
    if not isinstance(name, str):
        raise RegistrationError(f"op {name!r} was not registered:\n  - the name must be a string")
    outputs, residuals, mutates, dtypes = map(as_tuple, (outputs, residuals, mutates, dtypes))
    inputs = inputs if inputs is None else as_tuple(inputs)
    for label, corner in (("forward", forward), ("rule", rule), ("backward", backward), ("cpu_backward", cpu_backward)):
        problems += corner_problems(label, corner)
    if cpu is not None and not callable(cpu):
        problems.append(f"cpu is {cpu!r}; give a function of numpy arrays, or leave it out")
    if problems:
        raise RegistrationError(f"op {name!r} was not registered:\n" + "\n".join(f"  - {p}" for p in problems))
    if not name.isidentifier() or keyword.iskeyword(name):
        problems.append("the name must be a Python identifier")
    elif not replace and (taken := _find_owner(name)) is not None:
        problems.append(f"the name is taken by {taken}; write replace=True to put this op in its place, or choose another name")
    if inputs is None:
        read_inputs, required, variadic, attrs = read_signature(reference, problems)
    else:
        read_inputs, required, variadic, attrs = inputs, len(inputs), False, {}
    owner = owner_of_caller(lookup.reading.package)
    own = isinstance(reference, FunctionType)  # a ufunc has numpy's module and numpy's words
    rule, backward, cpu_backward = (_make_partials(corner, read_inputs, variadic) for corner in (rule, backward, cpu_backward))
    record = Op(
        name=name, reference=reference, shape=shape, forward=unwrap_corner(forward), rule=rule, backward=backward,
        cpu=cpu or plain_cpu(reference, shape, view or bool(mutates)), cpu_backward=cpu_backward,
        outputs=() if mutates else outputs, residuals=residuals, mutates=mutates, borrows=(),
        view=view, broadcasts=broadcasts,
        layout=layout or _default_layout(view or bool(mutates), broadcasts),
        promote=promote, into=into, reports=reports,
        holomorphic=holomorphic, autocast=autocast,
        host=on_host(name, cpu or reference, shape) if host else None, dtypes=dtypes, samples=samples, sizes=sizes, work=work, configs=configs,
        tolerance=tolerance or {}, condition=fill_conditions(condition, broadcasts or view), inputs=read_inputs, required=required,
        variadic=variadic, attrs=attrs, doc=doc or (reference.__doc__ or "" if own else ""),
        module=reference.__module__ if own else owner.module, owner=owner, forms=(),
        public=0 if mutates else len(outputs) - len(residuals),
    )  # fmt: skip
    _complete(record, borrows=find_borrowed(record, borrows, problems))
    problems += find_problems(record, differentiable)
    _complete(record, forms=list_forms(record, public, problems))
    if record.forms and registry.forms is not None and not problems:
        problems += registry.forms.problems(record, replace)
    if problems:
        raise RegistrationError(f"op {name!r} was not registered:\n" + "\n".join(f"  - {p}" for p in problems))
    corners: dict[str, Any] = {k: _add_steps(getattr(record, k), record) for k in ("rule", "backward", "cpu_backward")}
    _complete(record, **corners | _wrap_corners(record.forward, corners["backward"], record))
    if replace and _find_owner(name) is not None:
        registry.known(name)  # loads the file of the library's own, which would register it later otherwise
    registry[name] = record
    return record


def _complete(record: Op, **fields: Any) -> None:
    """Fill in what is read off a record that nobody has seen yet: to make another of it takes longer than all checks."""
    for name, value in fields.items():
        object.__setattr__(record, name, value)


def _find_owner(name: str) -> Owner | None:
    """The owner of a name that is taken, loaded or not."""
    if dict.__contains__(registry, name):
        return registry[name].owner
    home = registry.index.get(name)
    if home is None or being_imported(home):  # it is that file that registers it now
        return None
    return owner_in_library(home) if home not in sys.modules else registry[name].owner


def restore(name: str) -> Op:
    """Put back the op that had a name before `op(..., replace=True)` took it, and the public names that went with it; gives its record.

    Raises RegistrationError for a name that was not replaced in this process.
    """
    return registry.restore(name)


def _wrap_corners(forward: Any, backward: Partials | None, record: Op) -> dict[str, Any]:
    """The two corners that launch kernels, which are recorded once and replayed (see replay/)."""
    found: dict[str, Any] = {}
    if forward is not None:
        found["forward"] = Corner(
            forward, f"{record.name} forward",
            draws=() if "seed" in record.attrs else None, mutates=bool(record.mutates), reports=record.reports, one_type=record.promote is not None,
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


def _add_steps(corner: Partials | None, record: Op) -> Partials | None:
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
