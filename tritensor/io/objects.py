"""Pickles of objects that are no plain values (a whole model, a program's options); their tensors stand in the file as others do."""

from __future__ import annotations

import base64
import io
import pickle
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any

from tritensor.ground import dtypes
from tritensor.io import safe_globals
from tritensor.io.safetensors import NAMES
from tritensor.nn.parameter import Buffer, Parameter
from tritensor.tensor.core import Tensor
from tritensor.tensor.host_values import new_instance
from tritensor.tensor.size import Size

_STORABLE = {d.name for d in NAMES.values()}


def pack(root: Any) -> tuple[str, dict[str, Tensor]]:
    """The pickle of `root` as text, and its tensors by name. Raises what pickle does for an object that cannot be pickled (a lambda, an open file)."""
    out = io.BytesIO()
    pickler = _Pickler(out, protocol=pickle.DEFAULT_PROTOCOL)
    pickler.dump(root)
    return base64.b64encode(out.getvalue()).decode(), pickler.tensors


def unpack(text: str, tensors: Mapping[str, Tensor], *, trusted: bool) -> Any:
    """The object of `pack`. A trusted pickle runs what it says; another calls safe names alone, and raises pickle.UnpicklingError for the rest."""
    kind = _Unpickler if trusted else _CarefulUnpickler
    return kind(io.BytesIO(base64.b64decode(text, validate=True)), tensors).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.tensors: dict[str, Tensor] = {}
        self._held: dict[int, tuple[str, Tensor]] = {}  # by id; the tensor is kept, so that its id stays its own

    def persistent_id(self, obj: Any) -> Any:
        """The name under which a plain tensor goes into the file itself; None leaves an object to the pickle."""
        if type(obj) is not Tensor or obj._tracked or obj.__dict__ or dtypes.of(obj._array.dtype).name not in _STORABLE:
            return None
        name, _ = self._held.setdefault(id(obj), (str(len(self._held)), obj))
        self.tensors[name] = obj
        return name

    def reducer_override(self, obj: Any) -> Any:
        """A parameter, or a tensor with attributes, as its class, its bare values and the rest."""
        # a class with a pickle of its own keeps it
        if not isinstance(obj, Tensor) or type(obj).__reduce_ex__ is not Tensor.__reduce_ex__:
            return NotImplemented
        if dtypes.of(obj._array.dtype).name not in _STORABLE:
            return NotImplemented
        values = Tensor.wrap(obj._array)
        return _made, (type(obj), values, obj._tracked, obj.__dict__)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(file)
        self.tensors = tensors

    def persistent_load(self, pid: Any) -> Tensor:
        return self.tensors[pid]


class _CarefulUnpickler(_Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """A class or function by name, if it is safe. Nothing is imported for it, and no module's __getattr__ runs."""
        there = safe_globals.find_imported(module, name)
        if there is not None and any(there is safe for safe in _SAFE):
            return there
        found = safe_globals.find_safe(module, name)
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return found


# The name stands in files: a rename would make them unreadable.
def _made(cls: Any, values: Tensor, tracked: bool, attributes: dict[str, Any]) -> Any:
    t = new_instance(cls, values._array)
    t._tracked = tracked
    t.__dict__.update(attributes)
    return t


_SAFE = (
    _made, Tensor, Parameter, Buffer, Size, OrderedDict, Counter, defaultdict,
    dict, list, tuple, set, frozenset, int, float, complex, str, bool,
)  # fmt: skip
