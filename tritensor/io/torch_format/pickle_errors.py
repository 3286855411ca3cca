"""Errors for pickles that are damaged, or that want something which no value is."""

from __future__ import annotations

import pickle
import re
from typing import Any, NoReturn

from tritensor.ground.errors import CheckpointError
from tritensor.io import safe_globals


class ForbiddenGlobalError(CheckpointError, pickle.UnpicklingError):
    """A file that wants a class or function beside values. Nothing of it has run."""


class DamagedPickle(ValueError):
    """A pickle that no pickler wrote; the reader adds the file's name."""


def reject(x: Any, wanted: str) -> NoReturn:
    """Raise DamagedPickle for a value that is not what should stand there."""
    raise DamagedPickle(f"a {type(x).__name__} stands where {wanted} should")


def describe(x: Any) -> str:
    """A value of a pickle in a few words."""
    # repr() of one that is nested or shared without end would not come back, str() of a long integer takes quadratic time
    if type(x) is int:
        return str(x) if x.bit_length() < 200 else f"an integer of {x.bit_length()} bits"
    if type(x) in (str, bytes, float, bool) or x is None:
        return repr(x[:40] if isinstance(x, str | bytes) else x)
    if type(x) is tuple and len(x) <= 8 and all(type(n) is int and n.bit_length() < 200 for n in x):
        return str(x)
    return f"a {type(x).__name__}"


_ELEMENTS = re.compile(r"(complex|float|bfloat|u?int|quint|qint|bits)\d+\w*")  # names of dtypes

# Kinds of tensors that PyTorch has and tritensor has not, by the function that would rebuild them: (what it is, what to do).
_UNSUPPORTED_TENSORS = {
    "_rebuild_qtensor": ("a quantized tensor", "dequantize() it"),
    "_rebuild_sparse_tensor": ("a sparse tensor", "save it with to_dense()"),
    "_rebuild_sparse_csr_tensor": ("a sparse tensor", "save it with to_dense()"),
    "_rebuild_nested_tensor": ("a nested tensor", "save it as a list, unbind()"),
    "_rebuild_njt": ("a nested tensor", "save it as a list, unbind()"),
    "DTensor": ("a tensor that is spread over processes", "save its full_tensor()"),
}


def forbidden(label: str, module: str, name: str) -> ForbiddenGlobalError:
    """The error for a name that stands for no value: what it is, and what would load the file."""
    whole = f"{module}.{name}"
    if module.partition(".")[0] == "torch" and name in _UNSUPPORTED_TENSORS:
        what, instead = _UNSUPPORTED_TENSORS[name]
        return ForbiddenGlobalError(f"{label}: holds {what} ({whole}), which tritensor has not; where PyTorch is installed, {instead}")
    if module in ("torch", "torch.storage") and (name.endswith("Storage") or _ELEMENTS.fullmatch(name)):
        return ForbiddenGlobalError(
            f"{label}: holds a {whole}, of a type that tensors here cannot hold; convert it where PyTorch is installed"
        )
    if module.partition(".")[0] in ("sys", "os", "posix", "nt"):
        return ForbiddenGlobalError(
            f"{label}: wants {whole}, a function of the operating system: no checkpoint needs it; the file is hostile, do not load it"
        )
    first = "" if safe_globals.find_imported(module, name) is not None else f" (import {module} first)"
    return ForbiddenGlobalError(
        f"{label}: wants {whole}, which is no plain value: using it may run code from the file. If you trust the file, load(f, weights_only=False) "
        f"loads it{first}; with serialization.safe_globals([{name.rpartition('.')[2]}]): load(f) allows it alone; else save a state_dict"
    )
