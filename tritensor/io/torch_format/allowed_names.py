"""Table of the names that a file may use, each with its constructor (PyTorch's list for weights_only=True, numpy's numbers); and the names that it uses."""

from __future__ import annotations

import functools
import io
import pickletools
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ground.errors import CheckpointError, DeviceError
from tritensor.io import safe_globals, sources
from tritensor.io.torch_format import numpy_values, tensors
from tritensor.io.torch_format.archive import Archive
from tritensor.io.torch_format.pickle_errors import DamagedPickle, describe
from tritensor.nn.parameter import Parameter
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.layout import LAYOUTS
from tritensor.tensor.size import Size

_FACTORIES = (dict, list, tuple, set, frozenset, int, float, str, bool, complex, Counter, OrderedDict)


def _make_ordered_dict(vm: Any, items: Any = ()) -> OrderedDict[Any, Any]:
    made: OrderedDict[Any, Any] = OrderedDict()
    if type(items) in (dict, OrderedDict):
        vm.charge(100 * len(items))
        made.update(items)
        return made
    if type(items) not in (list, tuple) or not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in items):
        raise DamagedPickle("an OrderedDict of what are no pairs")
    vm.charge(100 * len(items))
    vm.put(made, [x for pair in items for x in pair])
    return made


def _make_counter(vm: Any, items: Any = None) -> Counter[Any]:
    if items is not None and type(items) is not dict:
        raise DamagedPickle(f"a Counter of a {type(items).__name__}")
    vm.charge(100 * len(items or ()))
    return Counter(items)


def _make_defaultdict(vm: Any, factory: Any = None) -> defaultdict[Any, Any]:
    if factory is not None and not any(factory is known for known in _FACTORIES):
        raise DamagedPickle(f"a defaultdict of {getattr(factory, '__name__', describe(factory))}; it may be of a built-in type")
    return defaultdict(factory)


def _check_members(vm: Any, given: Any) -> Any:
    if type(given) not in (list, tuple, set, frozenset):
        raise DamagedPickle(f"a set of a {type(given).__name__}")
    vm.charge(50 * len(given))
    return map(vm.key, given)


def _number_maker(kind: Any) -> Callable[..., Any]:
    def make(vm: Any, *args: Any) -> Any:
        if not all(type(x) in (int, float, bool) for x in args) or len(args) > 2:  # text would take quadratic time to read
            raise DamagedPickle(f"a {kind.__name__} of no numbers")
        return kind(*args)

    return make


def _container_maker(kind: Any) -> Callable[..., Any]:
    def make(vm: Any, given: Any = ()) -> Any:
        if type(given) not in (list, tuple):
            raise DamagedPickle(f"a {kind.__name__} of a {type(given).__name__}")
        vm.charge(8 * len(given))
        return kind(given)

    return make


def _make_str(vm: Any, given: str = "") -> str:
    if type(given) is not str:
        raise DamagedPickle("a str of no text")
    return given


def _encode_text(vm: Any, text: Any, coding: Any = "utf-8") -> bytes:
    """Bytes as pickle of protocol 2 writes them: text and a coding."""
    if type(text) is not str or type(coding) is not str or coding not in ("latin1", "latin-1", "utf-8", "utf8", "ascii"):
        raise DamagedPickle("bytes that are not written as text")
    vm.charge(len(text))
    return text.encode(coding)


def _make_bytearray(vm: Any, given: Any = b"", coding: Any = None) -> bytearray:
    # never of a number, which bytearray() would take as a length
    if coding is not None:
        given = _encode_text(vm, given, coding)
    if type(given) is not bytes:
        raise DamagedPickle(f"a bytearray of a {type(given).__name__}")
    vm.charge(len(given))
    return bytearray(given)


def _make_size(vm: Any, given: Any = ()) -> Size:
    if not isinstance(given, tuple | list) or not all(type(n) is int for n in given):
        raise DamagedPickle("a Size of no numbers")
    vm.charge(8 * len(given))
    return Size(given)


def _make_device(vm: Any, name: Any, index: Any = None) -> device:
    if type(name) is not str or not (index is None or type(index) is int):
        raise DamagedPickle("a device of no name")
    try:
        return device(name, index)
    except DeviceError:
        raise CheckpointError(
            f"{vm.label}: holds the value torch.device({describe(name)}), which is no device here; where PyTorch is installed, save its name, str(device)"
        ) from None


def _get_layout(vm: Any, name: Any) -> Any:
    known = LAYOUTS.get(name.removeprefix("torch.")) if type(name) is str else None
    if known is None:
        raise DamagedPickle(f"layout {describe(name)}, which PyTorch has not; tensors here are torch.strided")
    return known


def _refuse_call(what: str) -> Callable[..., Any]:
    def make(vm: Any, *args: Any) -> Any:
        raise DamagedPickle(f"{what} is called; tensors are rebuilt of storages since PyTorch 0.4: save the file again with a newer one")

    return make


@functools.cache
def name_tables() -> tuple[dict[str, Any], dict[int, Callable[..., Any]]]:
    """(what stands for each full name, the constructor of each by its id)."""
    made: dict[str, tuple[Any, Any]] = {
        "collections.OrderedDict": (OrderedDict, _make_ordered_dict),
        "collections.Counter": (Counter, _make_counter),
        "collections.defaultdict": (defaultdict, _make_defaultdict),
        "builtins.set": (set, lambda m, given=(): set(_check_members(m, given))),
        "builtins.frozenset": (frozenset, lambda m, given=(): frozenset(_check_members(m, given))),
        "builtins.list": (list, _container_maker(list)),
        "builtins.tuple": (tuple, _container_maker(tuple)),
        "builtins.dict": (dict, lambda m: {}),
        "builtins.str": (str, _make_str),
        "builtins.bytes": (bytes, lambda m: b""),
        "builtins.bytearray": (bytearray, _make_bytearray),
        **{f"builtins.{kind.__name__}": (kind, _number_maker(kind)) for kind in (int, float, bool, complex)},
        "_codecs.encode": (_encode_text, _encode_text),
        "torch.Size": (Size, _make_size),
        "torch.device": (device, _make_device),
        "torch.Tensor": (Tensor, _refuse_call("torch.Tensor")),
        "torch.nn.parameter.Parameter": (Parameter, tensors.rebuild_parameter),
        "torch.serialization._get_layout": (_get_layout, _get_layout),
        "torch._tensor._rebuild_from_type_v2": (tensors.rebuild_from_type, tensors.rebuild_from_type),
        **numpy_values.CONSTRUCTORS,
    }
    made["torch.tensor._rebuild_from_type_v2"] = made["torch._tensor._rebuild_from_type_v2"]  # as PyTorch 1.7 had it
    for name, function in {
        "_rebuild_tensor": tensors.rebuild_tensor,
        "_rebuild_meta_tensor_no_storage": tensors.rebuild_meta_tensor,
        "_rebuild_wrapper_subclass": tensors.rebuild_wrapper,
        "_rebuild_tensor_v2": tensors.rebuild_tensor_v2,
        "_rebuild_tensor_v3": tensors.rebuild_tensor_v3,
        "_rebuild_parameter": tensors.rebuild_parameter,
        "_rebuild_parameter_with_state": tensors.rebuild_parameter_with_state,
        "_rebuild_device_tensor_from_numpy": tensors.rebuild_device_tensor,
        "_rebuild_device_tensor_from_cpu_tensor": tensors.rebuild_device_tensor,
        "_rebuild_xla_tensor": tensors.rebuild_device_tensor,
    }.items():
        made[f"torch._utils.{name}"] = (function, function)
    names = {name: stands for name, (stands, _) in made.items()}
    for d in dtypes.ALL:
        names[f"torch.{d.name}"] = d
    for name, kind in tensors.STORAGES.items():
        names[f"torch.{name}"] = names[f"torch.storage.{name}"] = names[f"torch.cuda.{name}"] = kind
    return names, {id(stands): make for stands, make in made.values()}


def lookup(module: str, name: str) -> Any:
    """The object that stands for a name; None for one that no value needs."""
    return name_tables()[0].get(f"{module}.{name}")


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The full names in one of torch.save's archives that `load` refuses with weights_only=True, sorted; `f` is a path or a binary file.

    Raises ValueError for a file of another format, CheckpointError for one that is damaged. Nothing of the file is run.
    """
    source = sources.open_source(f)
    try:
        if sources.recognise_format(source.view, source.label) != "zip":
            raise ValueError(
                f"get_unsafe_globals_in_checkpoint: {source.label} is none of torch.save's archives; of another file load() tells what it wants"
            )
        named = _named_globals(bytes(Archive(source.view, source.label).read("data.pkl")), source.label)
    finally:
        source.close(0)
    return sorted(
        f"{module}.{name}" for module, name in named if lookup(module, name) is None and safe_globals.find_safe(module, name) is None
    )


def _named_globals(pickle: bytes, label: str) -> set[tuple[str, str]]:
    """(module, name) of every GLOBAL, and of every STACK_GLOBAL whose parts are the strings that were pushed or fetched last."""
    found: set[tuple[str, str]] = set()
    texts: list[Any] = []  # each value that was pushed; None for one that is no text
    memo: dict[int, Any] = {}
    try:
        for op, arg, _ in pickletools.genops(io.BytesIO(pickle)):
            if op.name == "GLOBAL":
                module, _, name = str(arg).partition(" ")
                found.add(("builtins" if module == "__builtin__" else module, name))
                texts.append(None)
            elif op.name == "STACK_GLOBAL":
                found.add((str(texts[-2]), str(texts[-1])))
                texts.append(None)
            elif "UNICODE" in op.name:
                texts.append(arg)
            elif op.name in ("BINGET", "LONG_BINGET"):
                texts.append(memo.get(int(str(arg))))
            elif op.name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
                memo[len(memo) if arg is None else int(str(arg))] = texts[-1] if texts else None
            elif op.name not in ("PROTO", "FRAME"):
                texts.append(None)
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{label}: the pickle in it is damaged: {error}") from None
    return found
