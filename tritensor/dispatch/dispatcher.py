"""`apply`, the one way in which an op runs: pick the backend from the device, check, run, wrap, and leave a Node if a gradient will be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.modes import state
from tritensor.dispatch import nodes
from tritensor.dispatch.nodes import record_node, refuse_written, share, written
from tritensor.ground import device_errors, dtypes, shortcuts
from tritensor.ground.errors import DeviceError
from tritensor.ground.numpy_warnings import quietly
from tritensor.ground.providers import provider
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import WrappedArray, transform
from tritensor.ops.array import CudaArray, to_layout
from tritensor.ops.lazy_array import LazyArray
from tritensor.ops.strided_array import MetaArray
from tritensor.ops.table import Op, registry

SCALARS = (bool, int, float, complex)

# Set by tritensor.tensor.core, the floor above: the Tensor class and its bare constructor.
_Tensor: Any = None
_new: Callable[..., Any]
OFF = False  # see ground/shortcuts.py: True while a region is open in some thread
shortcuts.read_by(globals())


def install(tensor_class: Any, new: Callable[..., Any]) -> None:
    """Tell dispatch what to wrap results in. Called once, by the floor above."""
    global _Tensor, _new
    _Tensor, _new = tensor_class, new
    nodes.install(tensor_class)


def apply(op: Op, *inputs: Any, **attrs: Any) -> Any:
    """Run an op on tensors (and Python scalars, where it broadcasts; None for an optional input). Gives a Tensor, several in a tuple, or None where it mutates.

    Raises before anything runs: TypeError for a foreign argument or attribute, DeviceError for mixed devices, what the op's shape rule raises.
    """
    if len(inputs) != len(op.inputs) and not op.variadic:
        inputs = fill_inputs(op, inputs)
    if op.promote is not None:
        inputs = _promote(op, inputs)
    arrays, cuda, host, wanted = [], None, False, False
    for x in inputs:
        if isinstance(x, _Tensor):
            # One look at each array's type decides the device: numpy's are on the CPU; a transform, and device meta, take the whole call over.
            if type(a := x._array) is CudaArray:
                if cuda is None:
                    cuda = a.storage.device
                elif cuda is not a.storage.device and cuda != a.storage.device:
                    raise mixed_devices(op, inputs)
            elif type(a) is not np.ndarray and type(a) in _ELSEWHERE:
                return _run_elsewhere(op, inputs, attrs, type(a))
            else:
                host = True
            wanted = x._tracked or wanted
            arrays.append(a)
        elif (x is None and len(arrays) >= op.required) or (op.broadcasts and isinstance(x, SCALARS) and not isinstance(x, np.generic)):
            arrays.append(x)
        elif op.broadcasts and isinstance(x, np.generic):
            return apply(op, *_python_numbers(inputs), **attrs)
        else:
            raise foreign(op, inputs, x)
    if cuda is not None and host:
        raise mixed_devices(op, inputs)
    if OFF:
        if here.segment is not None:
            return _run_elsewhere(op, inputs, attrs, LazyArray)
        shortcuts.cease_to_linger()
    # Ops that make arrays of numbers have nothing to read the device off but their attribute.
    if not inputs and "device" in attrs and attrs["device"].type != "cpu" and (cuda := attrs["device"]).type == "meta":
        return _run_elsewhere(op, inputs, attrs, MetaArray)
    if op.mutates:  # before anything is written: a leaf that requires grad must stay as it is
        refuse_written(op, inputs)
    key = None
    try:
        if cuda is None or op.view:
            op.shape(*arrays, **attrs)
            result = op.cpu(*arrays, **attrs)
        elif op.host is not None:
            result = op.host(*arrays, **attrs)
        else:
            corner: Any = op.forward
            if op.reports:  # a kernel that finds a bad index knows a number; the next wait turns it into this line of the program
                device_errors.enter(op)
            recording, key, given = corner.find(arrays, attrs)
            # A call that has a recording has passed the shape rule before, with the same layouts and attributes.
            if recording is None:
                op.shape(*arrays, **attrs)
            result = recording(given) if recording is not None else corner.run_first(key, given, arrays, attrs)
    except (TypeError, RuntimeWarning) as error:
        result = _compute_quietly(op, arrays, attrs, error)
    if op.mutates:  # not before: an index out of range, which only the numbers tell, has changed nothing
        written(op, inputs)
        if here.noting is not None:
            here.noting.spoil(f"{op.name} writes")
        return None
    return _wrap(op, inputs, attrs, arrays, result, cuda is None, wanted and state.enabled and op.rule is not None, key)


def _wrap(
    op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], arrays: list[Any], raw: Any, on_cpu: bool, record: bool, key: Any
) -> Any:  # fmt: skip
    """The tensors of what an op has computed, laid out as its rule says, and its node. `key` is that of the call's recording on a GPU."""
    result = raw
    # Kernels allocate their results as the layout rule says; numpy lays them as its loops please.
    if on_cpu:
        result = tuple([to_layout(op.layout, r, arrays) for r in raw]) if type(raw) is tuple else to_layout(op.layout, raw, arrays)
    if type(result) is not tuple:
        made = out = _new(result)
        if record and dtypes.has_gradient(result.dtype):
            record_node(op, inputs, attrs, (out,), (result,))
        if op.view:
            share(out, inputs[0], op, attrs)
    else:
        made = _outputs(op, inputs, attrs, result, record)
    if here.noting is not None:
        here.noting.note(op, inputs, attrs, made, arrays, raw, result, key)
    return made


_ELSEWHERE = (WrappedArray, MetaArray, LazyArray)


def _run_elsewhere(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], kind: type) -> Any:
    """The call of an op inside a transform, to which a wrapped array belongs, on device meta, where an op is its shape rule, or of arrays that are yet to be
    computed."""
    if kind is WrappedArray:
        return transform.current.run(op, inputs, attrs)
    if kind is LazyArray:
        return provider("lazy_evaluation.recording").run(op, inputs, attrs)
    return provider("dispatch.meta").run(op, inputs, attrs)


def _compute_quietly(op: Op, arrays: list[Any], attrs: dict[str, Any], error: TypeError | RuntimeWarning) -> Any:
    """A result on the CPU once more, whose first computation a warning of numpy's has ended. Raises TypeError for attributes that do not fit."""
    if isinstance(error, TypeError):
        raise explain_misgiven(op, attrs, error) from error.__cause__
    if op.mutates or not any([isinstance(a, np.ndarray) for a in arrays]):  # what has been written in part cannot be computed once more
        raise error
    return quietly(op.cpu, *arrays, **attrs)


def _outputs(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], result: tuple[Any, ...], record: bool) -> Any:
    """The tensors of an op with several outputs, and its node."""
    outs = tuple([_new(r) for r in result[: op.public]])
    if record:
        record_node(op, inputs, attrs, outs, result)
    return outs if op.public > 1 else outs[0]


def fill_inputs(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs with None for optional ones that were left out."""
    if len(inputs) > len(op.inputs):
        raise TypeError(
            f"{op.name}: takes {len(op.inputs)} inputs ({', '.join(op.inputs)}), {len(inputs)} were given; attributes are keyword-only"
        )
    if len(inputs) < op.required:
        raise TypeError(f"{op.name}: takes {', '.join(op.inputs)}; {len(inputs)} of {op.required} were given")
    return inputs + (None,) * (len(op.inputs) - len(inputs))


def explain_misgiven(op: Op, attrs: dict[str, Any], error: TypeError) -> TypeError:
    """The error to raise for one that an op's functions raised: where attributes are missing or unknown, it says so in the op's name and not in theirs."""
    from tritensor.ops.table.description import bare_signature

    signature = bare_signature(op)
    try:
        signature.bind(*op.inputs, **attrs)
    except TypeError as wrong:
        return TypeError(f"{op.name}: {wrong}; it is called as {op.name}{signature}")
    return error


def _python_numbers(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """numpy's scalars as Python's numbers, which are weak in promotion."""
    return tuple([x.item() if isinstance(x, np.generic) else x for x in inputs])


_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})  # their result says what a number was rounded to


def _promote(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs cast to their common type (see dtypes.result_type); Python numbers stay numbers, and numpy's become such."""
    values: list[Any] = []
    common = None
    mixed = False
    for x in inputs:
        if isinstance(x, _Tensor):
            values.append(x._array)
            if common is None:
                common = x._array.dtype
            elif common is not x._array.dtype:
                mixed = True
        elif isinstance(x, np.generic):
            return _promote(op, _python_numbers(inputs))
        elif isinstance(x, SCALARS):
            values.append(x)
            mixed = True
    if common is None:
        others = [x for x in inputs if x is not None and not isinstance(x, SCALARS)]
        if others:
            raise foreign(op, inputs, others[0])
        raise TypeError(f"{op.name}: at least one input must be a tensor; wrap one with tensor(...)")
    if mixed:
        common = dtypes.result_type(values, op.name)
    if op.promote == "float" and dtypes.of(common).kind in ("bool", "uint", "int"):
        common = dtypes.default_float().numpy
    if mixed:
        for x in inputs:
            if isinstance(x, int):
                dtypes.check_number(common, x, op.name)
        if op.name in _COMPARISONS and common.itemsize == 2:
            inputs = tuple([x if isinstance(x, _Tensor) else dtypes.as_held(common, x) for x in inputs])
    cast = registry["cast"]
    return tuple([apply(cast, x, dtype=common) if isinstance(x, _Tensor) and x._array.dtype != common else x for x in inputs])


def mixed_devices(op: Op, inputs: tuple[Any, ...]) -> DeviceError:
    """The error for tensors on several devices."""
    names = [*op.inputs, *(f"{op.inputs[-1]}[{i}]" for i in range(1, len(inputs)))]
    given = [(n, x.device) for n, x in zip(names, inputs, strict=False) if isinstance(x, _Tensor)]
    where = ", ".join(f"{n} on {d}" for n, d in given)
    target = max([str(d) for _, d in given])  # from meta nothing moves, and rather to the GPU than from it
    return DeviceError(f"{op.name}: {where}: all tensors must be on one device; move the others with .to({target!r})")


_PUBLIC_NAMES = {"x": "input", "a": "input", "b": "other"}  # what the function that everybody calls names an op's input


def foreign(op: Op, inputs: tuple[Any, ...], x: Any) -> TypeError:
    """The error for an input that is no tensor."""
    i = next(k for k, y in enumerate(inputs) if y is x)
    name = op.inputs[min(i, len(op.inputs) - 1)]
    hint = "tritensor.from_numpy(...)" if isinstance(x, np.ndarray | np.generic) else "tritensor.tensor(...)"
    given = "None" if x is None else f"a {type(x).__name__}"
    return TypeError(f"{op.name}: {_PUBLIC_NAMES.get(name, name)} is {given}, not a tensor; wrap it with {hint}")
