"""The one road of an op: pick the backend from the device, check, run, wrap, and leave a Node if a gradient will be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor.array import CudaArray
from tritensor.autograd.modes import state
from tritensor.autograd.node import Branch, Node, Version
from tritensor.cuda import device_errors
from tritensor.errors import DeviceError, DTypeError, GradError
from tritensor.replay import Corner, keep_view, named_part
from tritensor.table import Op, Ops, Spec, registry

_SCALARS = (bool, int, float, complex)

# Set by tritensor.tensor.core, the floor above: the Tensor class and its bare constructor.
_Tensor: Any = None
_new: Callable[..., Any]


def install(tensor_class: Any, new: Callable[..., Any]) -> None:
    """Tell dispatch what to wrap results in. Called once, by the floor above."""
    global _Tensor, _new
    _Tensor, _new = tensor_class, new


def apply(op: Op, *inputs: Any, **attrs: Any) -> Any:
    """Run an op on tensors (and Python scalars, where it broadcasts; None for an optional input).

    Returns a Tensor, a tuple of them for several outputs, or None for an op that mutates its inputs.
    Raises before anything runs: TypeError for a foreign argument, DeviceError for mixed devices, and what the op's
    shape rule raises (ShapeError, DTypeError, IndexError).
    """
    if len(inputs) < len(op.inputs) and not op.variadic:
        inputs = _fill(op, inputs)
    elif len(inputs) > len(op.inputs) and not op.variadic:
        raise TypeError(
            f"{op.name}: takes {len(op.inputs)} inputs ({', '.join(op.inputs)}), {len(inputs)} were given; attributes are keyword-only"
        )
    if op.promote is not None:
        inputs = _promoted(op, inputs)
    arrays = []
    cuda = None
    host = wanted = False
    for x in inputs:
        if isinstance(x, _Tensor):
            a = x.array
            if type(a) is CudaArray:
                if cuda is None:
                    cuda = a.storage.device
                elif cuda is not a.storage.device and cuda != a.storage.device:
                    raise _mixed_devices(op, inputs)
            else:
                host = True
            if x.tracked:
                wanted = True
            arrays.append(a)
        elif x is None or (op.broadcasts and isinstance(x, _SCALARS)):
            arrays.append(x)
        else:
            raise _foreign(op, inputs, x)
    if cuda is not None and host:
        raise _mixed_devices(op, inputs)
    if not inputs and "device" in attrs and attrs["device"].type == "cuda":
        cuda = attrs["device"]
    if cuda is None or op.view:
        op.shape(*arrays, **attrs)
        if op.mutates:
            _written(op, inputs)
        result = op.reference(*arrays, **attrs)
    else:
        corner: Any = op.forward
        if op.reports:
            device_errors.enter(op)
        recipe, key, given = corner.find(arrays, attrs)
        if recipe is None:
            op.shape(*arrays, **attrs)
        if op.mutates:
            _written(op, inputs)
        result = recipe(given) if recipe is not None else corner.first(key, given, arrays, attrs)
    if op.mutates:
        return None
    record = wanted and state.enabled and op.rule is not None
    if type(result) is not tuple:
        if cuda is None and type(result) is not np.ndarray:
            result = np.asarray(result)
        out = _new(result)
        if record and dtypes.is_float(result.dtype):
            record_node(op, inputs, attrs, (out,), (result,))
        if op.view:
            _share(out, inputs[0], op, attrs)
        return out
    return _outputs(op, inputs, attrs, result, cuda is None, record)


def _outputs(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], result: tuple[Any, ...], on_host: bool, record: bool) -> Any:
    """The tensors of an op with several outputs, and its node."""
    if on_host:
        result = tuple(r if type(r) is np.ndarray else np.asarray(r) for r in result)
    outs = tuple([_new(r) for r in result[: op.public]])
    if record:
        record_node(op, inputs, attrs, outs, result)
    if op.view:
        for out in outs:
            _share(out, inputs[0], op, attrs)
    return outs if op.public > 1 else outs[0]


def record_node(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], outs: tuple[Any, ...], arrays: tuple[Any, ...]) -> Node:
    """Make the node of one call and hang the outputs on it. `arrays` are all output arrays, residuals included."""
    edges = tuple([_edge(x) for x in inputs])
    kept_in, kept_out, meta_wanted = op.keep(tuple([e is not None for e in edges]))
    saved = None
    if True in kept_in:
        if op.variadic:
            last = len(kept_in) - 1
            saved = tuple([x if kept_in[min(i, last)] else None for i, x in enumerate(inputs)])
        else:
            saved = tuple([x if k else None for x, k in zip(inputs, kept_in, strict=True)])
    node = Node(op, edges, saved, None, attrs, _meta(inputs) if meta_wanted else None)
    if True in kept_out:
        held: list[Any] = []
        for i, k in enumerate(kept_out):
            if not k:
                held.append(None)
                continue
            if i >= len(outs):
                held.append((arrays[i], Version()))
                continue
            if outs[i].version is None:
                outs[i].version = Version()
            held.append((arrays[i], outs[i].version))
        node.outputs = tuple(held)
    if len(outs) == 1:
        outs[0].node = node
        outs[0].tracked = True
    else:
        for i, out in enumerate(outs):
            if dtypes.is_float(out.array.dtype):
                out.node = Branch(node, i)
                out.tracked = True
    return node


def _edge(x: Any) -> Any:
    if isinstance(x, _Tensor) and x.tracked:
        return x.node if x.node is not None else x
    return None


def _meta(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([(x.array.shape, x.array.dtype) if isinstance(x, _Tensor) else None for x in inputs])


def _share(out: Any, base: Any, op: Op, attrs: dict[str, Any]) -> None:
    """A view has its base's version counter, and the base knows of it, so that an in-place write reaches both graphs."""
    version = base.version
    if version is None:
        version = base.version = Version()
    out.version = version
    out.became_view_of(base, op, attrs)


def _written(op: Op, inputs: tuple[Any, ...]) -> None:
    """An op is about to overwrite some of its inputs."""
    for name, x in zip(op.inputs, inputs, strict=False):
        if name in op.mutates and x is not None:
            if x.tracked and state.enabled:
                raise GradError(f"{op.name}: {name} requires grad and would be overwritten; call it under no_grad()")
            if x.version is None:
                x.version = Version()
            x.version.bump(op.name)


def _fill(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(inputs) < op.required:
        raise TypeError(f"{op.name}: takes {', '.join(op.inputs)}; {len(inputs)} of {op.required} were given")
    return inputs + (None,) * (len(op.inputs) - len(inputs))


def _promoted(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs cast to their common type by the promotion table; Python scalars stay scalars."""
    common = None
    for x in inputs:
        if isinstance(x, np.generic):  # a numpy scalar is weak, like Python's
            return _promoted(op, tuple([y.item() if isinstance(y, np.generic) else y for y in inputs]))
        if isinstance(x, _Tensor):
            d = x.array.dtype
            if common is None:
                common = d
            elif common is not d:
                common = dtypes.promote(common, d, op.name)
    if common is None:
        raise TypeError(f"{op.name}: at least one input must be a tensor; wrap one with tensor(...)")
    for x in inputs:
        if isinstance(x, _SCALARS):
            common = dtypes.promote_scalar(common, x, op.name)
    if op.promote == "float" and dtypes.of(common).kind in ("bool", "uint", "int"):
        common = dtypes.default_float().numpy
    if dtypes.of(common).kind == "float8":
        raise DTypeError(f"{op.name}: {dtypes.of(common).name} is a storage type; compute in .to(float16), bfloat16 or float32")
    cast = registry["cast"]
    return tuple([apply(cast, x, dtype=common) if isinstance(x, _Tensor) and x.array.dtype != common else x for x in inputs])


def _mixed_devices(op: Op, inputs: tuple[Any, ...]) -> DeviceError:
    names = [*op.inputs, *(f"{op.inputs[-1]}[{i}]" for i in range(1, len(inputs)))]
    given = [(n, x.device) for n, x in zip(names, inputs, strict=False) if isinstance(x, _Tensor)]
    where = ", ".join(f"{n} on {d}" for n, d in given)
    target = next((str(d) for _, d in given if d.type == "cuda"), "cpu")
    return DeviceError(f"{op.name}: {where}: all tensors must be on one device; move the others with .to({target!r})")


def _foreign(op: Op, inputs: tuple[Any, ...], x: Any) -> TypeError:
    i = next(k for k, y in enumerate(inputs) if y is x)
    name = op.inputs[min(i, len(op.inputs) - 1)]
    hint = "tritensor.from_numpy(...)" if isinstance(x, np.ndarray | np.generic) else "tritensor.tensor(...)"
    return TypeError(f"{op.name}: {name} is a {type(x).__name__}, not a tensor; wrap it with {hint}")


# The fast lanes: what `apply` does, unrolled for the ops that are called most, on the CPU, on floating tensors of one type.
def binary_lane(op: Op, otherwise: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The call of an elementwise op of two inputs without attributes; `otherwise` takes what the lane does not."""
    compute = getattr(op.reference, "bare", op.reference)  # a ufunc without its care for numbers
    differentiable = op.rule is not None
    keep = tuple([tuple([(*op.keep((p, q))[0], op.keep((p, q))[1][0]) for q in (False, True)]) for p in (False, True)])
    make, Tensor, ndarray, mode = object.__new__, _Tensor, np.ndarray, state
    known = _recipes(op)
    scalar = _scalar_lane(op, otherwise)

    def call(a: Any, b: Any) -> Any:
        try:
            x = a.array
            y = b.array
        except AttributeError:
            return scalar(a, b)
        dtype = x.dtype
        same = x.shape == y.shape
        if type(x) is ndarray and type(y) is ndarray and dtype is y.dtype and dtype.kind == "f" and (same or _fits(x.shape, y.shape)):
            result = compute(x, y)
            if type(result) is not ndarray:
                result = np.asarray(result)
        elif type(x) is CudaArray and type(y) is CudaArray and (recipe := known.get((x.known_layout, y.known_layout))) is not None:
            result = recipe((x, y))
        else:
            return otherwise(a, b)
        out = make(Tensor)
        out.array = result
        out._grad = out.version = out.extra = None
        if differentiable and (a.tracked or b.tracked) and mode.enabled:
            left = (a.node or a) if a.tracked else None
            right = (b.node or b) if b.tracked else None
            keep_a, keep_b, keep_y = keep[left is not None][right is not None]
            if keep_y:
                out.version = Version()
            out.node = Node(
                op, (left, right), (a if keep_a else None, b if keep_b else None) if keep_a or keep_b else None,
                ((result, out.version),) if keep_y else None, None, None if same else ((x.shape, dtype), (y.shape, y.dtype)),
            )  # fmt: skip
            out.tracked = True
        else:
            out.node = None
            out.tracked = False
        return out

    return call


def _scalar_lane(op: Op, otherwise: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A floating tensor on the CPU with a Python number, which is weak: the result has the tensor's type."""
    compute = getattr(op.reference, "bare", op.reference)  # a ufunc without its care for numbers
    differentiable = op.rule is not None
    (keep_a, _), (keep_y,), _ = op.keep((True, False))
    (_, keep_b), (keep_y_b,), _ = op.keep((False, True))
    known = _recipes(op)
    new, mode = _new, state

    def call(a: Any, b: Any) -> Any:
        left = type(b) is float or type(b) is int
        t = a if left else b
        x = getattr(t, "array", None)
        if type(x) is CudaArray:
            number = b if left else a
            if type(number) is not float and type(number) is not int:
                return otherwise(a, b)
            part = (int, number) if type(number) is int else (float, number or str(number))  # 0.0 and -0.0 are two keys
            recipe = known.get((x.known_layout, part) if left else (part, x.known_layout))
            if recipe is None:
                return otherwise(a, b)
            result = recipe((x,))
        elif type(x) is not np.ndarray or x.dtype.kind != "f" or x.itemsize == 2 or not (left or type(a) is float or type(a) is int):
            return otherwise(a, b)
        else:
            result = compute(x, b) if left else compute(a, x)
            if type(result) is not np.ndarray:
                result = np.asarray(result)
        out = new(result)
        if differentiable and t.tracked and mode.enabled:
            held = None
            if keep_y if left else keep_y_b:
                out.version = Version()
                held = ((result, out.version),)
            edge = t.node or t
            if left:
                out.node = Node(op, (edge, None), (a if keep_a else None, b), held, None, None)
            else:
                out.node = Node(op, (None, edge), (a, b if keep_b else None), held, None, None)
            out.tracked = True
        return out

    return call


def _recipes(op: Op) -> dict[Any, Any]:
    """The recipes of an op's forward, by key (see replay.py); of a view, its own. None where a lane must not use them: an op that
    reports errors enters the caller's line first, and those of one that draws take its seed and offset."""
    corner = op.forward
    return corner.known if isinstance(corner, Corner) and not corner.reports and corner.draws is None else {}


def _fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes broadcast."""
    return all([m == n or m == 1 or n == 1 for m, n in zip(reversed(a), reversed(b), strict=False)])


def _single_lane(op: Op) -> Callable[..., Any]:
    """The call of an op of one input and one output. Those that promote take floating tensors here, which need no promotion."""
    compute, floats_only = op.reference, op.promote is not None
    check = None if op.broadcasts and floats_only and not op.attrs and takes_floats(op) else op.shape
    differentiable, view = op.rule is not None, op.view
    (keep_x,), (keep_y, *_), meta = op.keep((True,))
    meta = meta and not op.broadcasts
    known = _recipes(op)
    new, mode, ndarray = _new, state, np.ndarray

    def call(a: Any, **attrs: Any) -> Any:
        x = getattr(a, "array", None)
        if type(x) is CudaArray:
            layout = x.known_layout or x.layout()
            key = (layout, named_part(attrs)) if attrs else (layout,)
            try:
                recipe = known.get(key)
            except TypeError:  # an attribute that cannot be hashed
                return apply(op, a, **attrs)
            if recipe is None:
                out = apply(op, a, **attrs)
                if view:
                    keep_view(known, key, x, out.array)
                return out
            result = recipe((x,))
        elif type(x) is not ndarray or (floats_only and x.dtype.kind != "f"):
            return apply(op, a, **attrs)
        else:
            if check is not None:
                check(x, **attrs)
            result = compute(x, **attrs)
            if type(result) is not ndarray:
                result = np.asarray(result)
        out = new(result)
        if differentiable and a.tracked and mode.enabled and (check is None or dtypes.is_float(result.dtype)):
            if keep_y:
                out.version = Version()
            out.node = Node(
                op, (a.node or a,), (a,) if keep_x else None, ((result, out.version),) if keep_y else None, attrs, ((x.shape, x.dtype),) if meta else None
            )  # fmt: skip
            out.tracked = True
        if view:
            _share(out, a, op, attrs)
        return out

    return call


def takes_floats(op: Op) -> bool:
    """Whether the shape rule lets floating tensors through: lanes of elementwise ops do not ask it again."""
    probe = Spec((), np.dtype(np.float32))
    try:
        op.shape(*[probe] * len(op.inputs))
    except DTypeError:
        return False
    return True


def bind(op: Op) -> Callable[..., Any]:
    """The callable that `ops.<name>` gives."""
    if len(op.inputs) == 2 and op.broadcasts and op.promote is not None and not op.attrs and takes_floats(op):
        return binary_lane(op, lambda a, b: apply(op, a, b))
    if len(op.inputs) == 1 and not op.variadic and not op.mutates and len(op.outputs) == 1:
        return _single_lane(op)

    def call(*inputs: Any, **attrs: Any) -> Any:
        return apply(op, *inputs, **attrs)

    return call


Ops.bind = staticmethod(bind)  # type: ignore[assignment]
