"""Messages about names that are not here: whether PyTorch has the name, and the nearest one that is here."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from tritensor.tensor.core import Tensor
from tritensor.torch_compat import recorded_names
from tritensor.torch_compat.hints import hint_for

# Called with (path, name, frame) before the error: `python -m tritensor.run` notes where a script asked for what.
listeners: list[Callable[[str, str, types.FrameType | None], None]] = []
# Where the nearest name is looked for, in this order, when its own module has none.
ELSEWHERE = (
    "", "nn.functional", "Tensor", "nn", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "autograd", "utils.data",
    "linalg", "fft", "special", "cuda",
)  # fmt: skip

# What serves the same end under another name.
INSTEAD = {
    ("utils.data", "IterDataPipe"): "utils.data.IterableDataset: data pipes are not part of the library",
    ("utils.data", "MapDataPipe"): "utils.data.Dataset: data pipes are not part of the library",
    **{
        ("", kind + "Storage"): "Tensor.storage(), a tensor's memory for reading"
        for kind in (
            *["Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool", "ComplexFloat", "ComplexDouble"],
        )
    },
}


class _LazyMessage:
    """An error whose words are put together when they are read: most are caught by `hasattr` and read by nobody."""

    words: tuple[str, str, str]

    def __str__(self) -> str:
        return message_for(*self.words)  # nothing is searched before: hasattr() asks a thousand times


class AbsentAttributeError(_LazyMessage, AttributeError):
    """A name that is not here. Tracebacks call it by its builtin class."""

    __module__, __qualname__ = "builtins", "AttributeError"  # a traceback shows the name that everybody knows


class AbsentImportError(_LazyMessage, ImportError):
    """A name that is not here, asked for by `from ... import`. Tracebacks call it by its builtin class."""

    __module__, __qualname__ = "builtins", "ImportError"


class AbsentModuleError(ModuleNotFoundError):
    """A module that is not here, asked for by `import`. Tracebacks call it by its builtin class."""

    __module__, __qualname__ = "builtins", "ModuleNotFoundError"


def refuse_module(path: str) -> NoReturn:
    """Raise for `import tritensor.<path>`, where PyTorch has a module of that path and this library none of its names."""
    above, _, name = path.rpartition(".")
    for listen in listeners:
        listen(above, name, calling_frame())
    said = hint_for(path, "")
    raise AbsentModuleError(
        f"No module named 'tritensor.{path}': torch {recorded_names.VERSION} has torch.{path}, tritensor has none of its names"
        + (f": {said}" if said else ""),
        name="tritensor." + path,
    )


def refuse(path: str, name: str) -> NoReturn:
    """Raise for a name that the module `path` has not: ImportError inside `from ... import`, else AttributeError."""
    frame = calling_frame()
    if listeners and (name in recorded_names.names_of(path) or name in recorded_names.children_of(path)):
        for listen in listeners:
            listen(path, name, frame)
    module = "tritensor" + ("." + path if path else "")
    standard = f"module {module!r} has no attribute {name!r}"
    error: _LazyMessage = AbsentImportError(standard, name=module) if is_from_import(frame) else AbsentAttributeError(standard)
    error.words = (path, name, standard)
    raise error  # type: ignore[misc]


def message_for(path: str, name: str, standard: str) -> str:
    """Python's own words, then what PyTorch has, then the nearest thing here."""
    known = name in recorded_names.names_of(path) or name in recorded_names.children_of(path)
    where = "torch" + ("." + path if path else "")
    said = hint_for(path, name)
    if said and (known or path == "nn"):
        return f"{standard}: {where} {recorded_names.VERSION} has it, tritensor does not: {said}"
    near = nearest_name(path, name)
    here = f": {where} {recorded_names.VERSION} has it, tritensor does not" if known else ""
    return standard + here + (f"; the nearest here is {near}" if near else "")


def nearest_name(path: str, name: str) -> str:
    """What to use for a name: the same name in another module, the form without a last underscore, else one that is spelled like it; "" where none is."""
    known = name in recorded_names.names_of(path)
    if known and (path, name) in INSTEAD:
        return INSTEAD[path, name]
    others = [p for p in ELSEWHERE if p != path]
    for wanted in dict.fromkeys((name, name.rstrip("_"))):  # an in-place form that is not here has its plain form
        for p in (path, *others):
            if wanted in public_names_of(p) and (p, wanted) != (path, name):
                return full_path(p, wanted)
    import difflib

    for p in (path, *others):
        if close := difflib.get_close_matches(name, public_names_of(p), 1, 0.85 if known else 0.7 if p == path else 0.8):
            return full_path(p, close[0])
    return ""


def full_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else f"tritensor.{name}"


def public_names_of(path: str) -> list[str]:
    """The public names that a module of ours has by itself."""
    if path == "Tensor":
        return [n for n in dir(Tensor) if not n.startswith("_") and not isinstance(_class_attribute(Tensor, n), AbsentMethod)]
    try:
        module = importlib.import_module("tritensor" + ("." + path if path else ""))
    except ImportError:  # a module that wants a package which is not installed has nothing to offer
        return []
    return [n for n in vars(module) if not n.startswith("_")]


def _class_attribute(owner: type, name: str) -> Any:
    return next((vars(c)[name] for c in owner.__mro__ if name in vars(c)), None)


def calling_frame() -> types.FrameType | None:
    """The frame outside this folder, and outside the import system, that asked."""
    frame: types.FrameType | None = sys._getframe(1)  # whose bytecode tells `from a import b` from `a.b`
    while frame is not None and _is_internal(frame):
        frame = frame.f_back
    return frame


def _is_internal(frame: types.FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    ours = module == "tritensor" or module.startswith("tritensor.torch_compat")
    return ours or "importlib" in frame.f_code.co_filename


def is_importing(frame: types.FrameType) -> bool:
    """Whether who called a finder's find_spec (the frame above `frame`) is importing, and not asking whether a module is there."""
    above = frame.f_back
    return above is not None and above.f_code.co_name == "_find_and_load_unlocked"


def is_from_import(frame: types.FrameType | None) -> bool:
    """Whether a frame stands at `from ... import name`, where Python would put words of its own in place of an AttributeError's."""
    import dis

    # Python replaces an AttributeError there by words of its own.
    return frame is not None and frame.f_lasti >= 0 and dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


class AbsentMethod:
    """A method of PyTorch's Tensor that is not here. It stands in the class and answers as if it did not: a `__getattr__` of Tensor would
    cost every attribute of every tensor a quadruple of its time."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> NoReturn:
        for listen in listeners:
            listen("Tensor", self.name, calling_frame())
        standard = f"{(owner or Tensor).__name__!r} object has no attribute {self.name!r}"
        error = AbsentAttributeError(standard)
        error.words = ("Tensor", self.name, standard)
        raise error


def mark_methods() -> None:
    """Put an Absent wherever PyTorch's Tensor has a public attribute that ours has not."""
    for name in recorded_names.tensor_names():
        if not hasattr(Tensor, name) and _class_attribute(Tensor, name) is None:  # hasattr alone would not see a slot that is not filled
            setattr(Tensor, name, AbsentMethod(name))
    Tensor.__dir__ = _dir_without_absent  # type: ignore[assignment, method-assign]


def _dir_without_absent(self: Tensor) -> list[str]:
    """A tensor's attributes, those that are absent left out."""
    return [n for n in object.__dir__(self) if not isinstance(_class_attribute(type(self), n), AbsentMethod)]
