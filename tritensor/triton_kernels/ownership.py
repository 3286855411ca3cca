"""Owner of a call `kernel[grid](...)`: this library, or another whose tensors Triton serves as before."""

from __future__ import annotations

import sys
from typing import Any

from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.launch import register_conversion
from tritensor.ground.errors import DeviceError
from tritensor.ops.array import CudaArray
from tritensor.tensor.core import Tensor
from tritensor.triton_kernels import arguments

PLAIN: frozenset[type] = frozenset({int, float, bool, str, type(None)})  # classes of arguments that are taken as they are
_PLAIN, _TRITENSOR, _OTHER_LIBRARY = 1, 2, 3
_KINDS: dict[type, int] = dict.fromkeys(PLAIN, _PLAIN)
_HOLDERS: set[type] = set()  # classes of which each object is what it holds: tuples, Triton's descriptors and reinterpreted tensors


def _kind(value: Any) -> int:
    """Whether an argument is of this library, of another one that has tensors, or of neither; learnt by class."""
    cls = value.__class__
    found = _KINDS.get(cls)
    # by class, since a launch asks for each argument: isinstance against three classes would cost more than the launch's key
    if found is None and cls not in _HOLDERS:
        if isinstance(value, Tensor | CudaArray | TensorDescriptor):
            found = _TRITENSOR
        elif arguments.is_typed_pointer(value):
            register_conversion(cls, arguments.array_at_pointer)
            found = _TRITENSOR
        elif not isinstance(value, tuple) and not hasattr(value, "base"):
            found = _OTHER_LIBRARY if hasattr(value, "data_ptr") and not arguments.is_mock(value) else _PLAIN
        if found is None:
            _HOLDERS.add(cls)
        else:
            _KINDS[cls] = found
    if found is None:
        inner = [_kind(v) for v in (value if isinstance(value, tuple) else (value.base,))]
        return _TRITENSOR if _TRITENSOR in inner else _OTHER_LIBRARY if _OTHER_LIBRARY in inner else _PLAIN
    return found


def is_tritensor_call(kernel: Any, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether a call is to be served here: it has our tensors, or no tensors and no other library is there that may have meant it.

    Raises DeviceError for one that mixes tensors of two libraries.
    """
    kinds = {_KINDS.get(a.__class__) or _kind(a) for a in args}
    if named:
        kinds |= {_KINDS.get(a.__class__) or _kind(a) for a in named.values()}
    if _TRITENSOR in kinds:
        if _OTHER_LIBRARY in kinds:
            other = next(a for a in (*args, *named.values()) if _kind(a) == _OTHER_LIBRARY)
            raise DeviceError(
                f"launch {kernel.__name__}: tensors of two libraries, tritensor's and {type(other).__module__}.{type(other).__qualname__}; "
                "tritensor.from_dlpack(other) takes it over without a copy"
            )
        return True
    return _OTHER_LIBRARY not in kinds and not other_torch()


def other_torch() -> bool:
    """Whether PyTorch itself is imported (and not this library under its name, as `python -m tritensor.run` has it)."""
    torch = sys.modules.get("torch")
    return torch is not None and not (torch.__name__.startswith("tritensor") or type(torch).__module__.startswith("tritensor"))
