"""The names that a file may use, and what each makes: PyTorch's own list for weights_only=True, and numpy's numbers."""

from __future__ import annotations

import functools
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ground.errors import CheckpointError, DeviceError
from tritensor.io.torch_format import numpy_values, tensors
from tritensor.io.torch_format.pickle_errors import Damaged, told
from tritensor.nn.parameter import Parameter
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.layout import strided
from tritensor.tensor.size import Size

_FACTORIES = (dict, list, tuple, set, frozenset, int, float, str, bool, complex, Counter, OrderedDict)


def _ordered(machine: Any, items: Any = ()) -> OrderedDict[Any, Any]:
    made: OrderedDict[Any, Any] = OrderedDict()
    if type(items) in (dict, OrderedDict):
        machine.charge(100 * len(items))
        made.update(items)
        return made
    if type(items) not in (list, tuple) or not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in items):
        raise Damaged("an OrderedDict of what are no pairs")
    machine.charge(100 * len(items))
    machine.put(made, [x for pair in items for x in pair])
    return made


def _counter(machine: Any, items: Any = None) -> Counter[Any]:
    if items is not None and type(items) is not dict:
        raise Damaged(f"a Counter of a {type(items).__name__}")
    machine.charge(100 * len(items or ()))
    return Counter(items)


def _default(machine: Any, factory: Any = None) -> defaultdict[Any, Any]:
    if factory is not None and not any(factory is known for known in _FACTORIES):
        raise Damaged(f"a defaultdict of {getattr(factory, '__name__', told(factory))}; it may be of a built-in type")
    return defaultdict(factory)


def _members(machine: Any, given: Any) -> Any:
    if type(given) not in (list, tuple, set, frozenset):
        raise Damaged(f"a set of a {type(given).__name__}")
    machine.charge(50 * len(given))
    return map(machine.key, given)


def _number(kind: Any) -> Callable[..., Any]:
    def make(machine: Any, *args: Any) -> Any:
        if not all(type(x) in (int, float, bool) for x in args) or len(args) > 2:
            raise Damaged(f"a {kind.__name__} of no numbers")
        return kind(*args)

    return make


def _container(kind: Any) -> Callable[..., Any]:
    def make(machine: Any, given: Any = ()) -> Any:
        if type(given) not in (list, tuple):
            raise Damaged(f"a {kind.__name__} of a {type(given).__name__}")
        machine.charge(8 * len(given))
        return kind(given)

    return make


def _text(machine: Any, given: str = "") -> str:
    if type(given) is not str:
        raise Damaged("a str of no text")
    return given


def _encode(machine: Any, text: Any, coding: Any = "utf-8") -> bytes:
    """How pickle of protocol 2 writes bytes."""
    if type(text) is not str or type(coding) is not str or coding not in ("latin1", "latin-1", "utf-8", "utf8", "ascii"):
        raise Damaged("bytes that are not written as text")
    machine.charge(len(text))
    return text.encode(coding)


def _byte_array(machine: Any, given: Any = b"", coding: Any = None) -> bytearray:
    """Never of a number, which would be a length."""
    if coding is not None:
        given = _encode(machine, given, coding)
    if type(given) is not bytes:
        raise Damaged(f"a bytearray of a {type(given).__name__}")
    machine.charge(len(given))
    return bytearray(given)


def _size(machine: Any, given: Any = ()) -> Size:
    if not isinstance(given, tuple | list) or not all(type(n) is int for n in given):
        raise Damaged("a Size of no numbers")
    machine.charge(8 * len(given))
    return Size(given)


def _device(machine: Any, name: Any, index: Any = None) -> device:
    if type(name) is not str or not (index is None or type(index) is int):
        raise Damaged("a device of no name")
    try:
        return device(name, index)
    except DeviceError:
        raise CheckpointError(
            f"{machine.label}: holds the value torch.device({told(name)}), which is no device here; where PyTorch is installed, save its name, str(device)"
        ) from None


def _layout(machine: Any, name: Any) -> Any:
    if type(name) is not str or name != "torch.strided":
        raise Damaged(f"layout {told(name)}, which tensors here have not; they are torch.strided")
    return strided


def _uncalled(what: str) -> Callable[..., Any]:
    def make(machine: Any, *args: Any) -> Any:
        raise Damaged(f"{what} is called; tensors are rebuilt of storages since PyTorch 0.4: save the file again with a newer one")

    return make


@functools.cache
def known() -> tuple[dict[str, Any], dict[int, Callable[..., Any]]]:
    """What stands for each full name, and what makes values of it, by id."""
    made: dict[str, tuple[Any, Any]] = {
        "collections.OrderedDict": (OrderedDict, _ordered),
        "collections.Counter": (Counter, _counter),
        "collections.defaultdict": (defaultdict, _default),
        "builtins.set": (set, lambda m, given=(): set(_members(m, given))),
        "builtins.frozenset": (frozenset, lambda m, given=(): frozenset(_members(m, given))),
        "builtins.list": (list, _container(list)),
        "builtins.tuple": (tuple, _container(tuple)),
        "builtins.dict": (dict, lambda m: {}),
        "builtins.str": (str, _text),
        "builtins.bytes": (bytes, lambda m: b""),
        "builtins.bytearray": (bytearray, _byte_array),
        **{f"builtins.{kind.__name__}": (kind, _number(kind)) for kind in (int, float, bool, complex)},
        "_codecs.encode": (_encode, _encode),
        "torch.Size": (Size, _size),
        "torch.device": (device, _device),
        "torch.Tensor": (Tensor, _uncalled("torch.Tensor")),
        "torch.nn.parameter.Parameter": (Parameter, tensors.rebuild_parameter),
        "torch.serialization._get_layout": (_layout, _layout),
        "torch._tensor._rebuild_from_type_v2": (tensors.rebuild_from_type, tensors.rebuild_from_type),
        **numpy_values.CONSTRUCTORS,
    }
    made["torch.tensor._rebuild_from_type_v2"] = made["torch._tensor._rebuild_from_type_v2"]  # as PyTorch 1.7 had it
    for name, function in {
        "_rebuild_tensor": tensors.rebuild_tensor,
        "_rebuild_tensor_v2": tensors.rebuild_tensor_v2,
        "_rebuild_tensor_v3": tensors.rebuild_tensor_v3,
        "_rebuild_parameter": tensors.rebuild_parameter,
        "_rebuild_parameter_with_state": tensors.rebuild_parameter_with_state,
        "_rebuild_device_tensor_from_numpy": tensors.rebuild_elsewhere,
        "_rebuild_device_tensor_from_cpu_tensor": tensors.rebuild_elsewhere,
        "_rebuild_xla_tensor": tensors.rebuild_elsewhere,
    }.items():
        made[f"torch._utils.{name}"] = (function, function)
    names = {name: stands for name, (stands, _) in made.items()}
    for d in dtypes.ALL:
        names[f"torch.{d.name}"] = d
    for name, kind in tensors.STORAGES.items():
        names[f"torch.{name}"] = names[f"torch.storage.{name}"] = names[f"torch.cuda.{name}"] = kind
    return names, {id(stands): make for stands, make in made.values()}


def lookup(module: str, name: str) -> Any:
    """What stands for a name, None for one that no value needs."""
    return known()[0].get(f"{module}.{name}")
