"""Imports and attributes that no file of ours answers: `tritensor.nn.modules.conv` holds what PyTorch's module of that path holds, as far as it is here."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from tritensor.cuda.jit import unread
from tritensor.ground.naming.named_module import NamedModule
from tritensor.ground.process.late_imports import loading
from tritensor.nn import functional
from tritensor.tensor.public_api import op_forms
from tritensor.tensor.public_api.publish import namespaces
from tritensor.torch_compat import recorded_names
from tritensor.torch_compat.locations import ADDED, COMMANDS, FILES, IMPORTED, STANDARD
from tritensor.torch_compat.missing import is_importing, refuse, refuse_module
from tritensor.torch_compat.placeholders import NAMES_ONLY, find_placeholder

ABSENT = object()


_names_held: Any = types.ModuleType.__dict__["__dict__"].__get__  # type: ignore[index]  # what a module holds, whatever its class says


class PathModule(NamedModule):
    """A module that holds nothing itself: its names are looked up where they stand, and all at once for who asks what it holds, by vars(module)."""

    def __init__(self, path: str) -> None:
        super().__init__("tritensor." + path, f"PyTorch's path torch.{path}: its names stand elsewhere in tritensor.")
        _names_held(self)["_path"] = path

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        held: dict[str, Any] = _names_held(self)
        if not held.get("_is_filled"):
            held["_is_filled"] = True
            held.update({name: look_up(self._path, name) for name in self.__all__})
        return held

    def __getattr__(self, name: str) -> Any:
        path = _names_held(self)["_path"]
        if name == "__all__":
            listed = {*namespaces.get(path, ()), *recorded_names.names_of(path)}
            return sorted(n for n in listed if not n.startswith("_") and find_name(path, n) is not ABSENT)
        value = look_up(path, name)
        _names_held(self)[name] = value  # looked up once: the next access does not come here
        return value

    def __dir__(self) -> list[str]:
        return sorted({*self.__all__, *(c for c in recorded_names.children_of(self._path) if is_here(f"{self._path}.{c}"))})


def module_getattr(path: str) -> Callable[[str], Any]:
    """A module's `__getattr__`: what it has not itself is looked up under PyTorch's path."""

    def look(name: str) -> Any:
        return look_up(path, name)

    look.__name__ = look.__qualname__ = "__getattr__"
    return look


def look_up(path: str, name: str) -> Any:
    """What the module `path` of PyTorch's tree calls `name`. Raises AttributeError, or ImportError inside `from ... import`."""
    if (name.startswith("__") and name not in FILES) or name == "_path":  # Python asks modules for names of its own, __path__ and __file__
        raise AttributeError(f"module {'tritensor' + '.' * bool(path) + path!r} has no attribute {name!r}")
    value = find_name(path, name)
    if value is ABSENT and not path and not name.startswith("_") and (of_package := op_forms.find_in_plugins(name)) is not None:
        return of_package
    if value is ABSENT:
        refuse(path, name)
    return value


def module_at(path: str) -> types.ModuleType:
    """The module at a path of PyTorch's tree, "nn.modules.conv", imported; "" is the front door. Raises ImportError where it is not here."""
    return importlib.import_module(f"tritensor.{path}" if path else "tritensor")


def find_name(path: str, name: str) -> Any:
    """A name of a module of PyTorch's tree, in ours; ABSENT where it is not here."""
    below = f"{path}.{name}" if path else name
    if is_here(below):
        return importlib.import_module("tritensor." + below)
    return _find_object(path, name)


def _find_object(path: str, name: str) -> Any:
    """A function, class or value of a module of PyTorch's tree, and none of the modules below it."""
    if name in namespaces.get(path, ()):
        return namespaces[path][name]
    if path == "nn" and name in vars(functional):  # nn.cross_entropy: an older spelling of nn.functional's
        return vars(functional)[name]
    added = ADDED.get(path, {}).get(name) or ("foreach" if not path and name.startswith("_foreach_") else None)
    if added:
        file, _, other = added.partition(":")
        place = "tritensor" + file if file.startswith(".") else "tritensor.torch_compat.modules." + file
        return getattr(importlib.import_module(place), other or name, ABSENT)
    noted = recorded_names.names_of(path).get(name)
    if noted is not None and noted.home != path:  # home is itself where PyTorch defines the name: nothing further to follow
        value = _find_at_home(noted.home, name)
        if value is not ABSENT:
            return value
    if stand_in := find_placeholder(path, name, noted):
        return stand_in
    return _find_imported(path, name)


def _find_imported(path: str, name: str) -> Any:
    """A name that PyTorch's modules of a family import from elsewhere and scripts take from there, `from torch.nn.modules.linear import Module`."""
    for family, known in IMPORTED.items():
        if name in known and (path == family or path.startswith(family + ".")):
            module, _, attribute = known[name].partition(":")
            holder = importlib.import_module("tritensor" + ("." + module if module else ""))
            return getattr(holder, attribute) if attribute else holder  # `from torch.nn.modules.linear import torch` is written, too
    return importlib.import_module(name) if name in STANDARD.get(path, ()) else ABSENT


def _find_at_home(path: str, name: str) -> Any:
    """A name in the module that PyTorch made its home."""
    module = sys.modules.get("tritensor" + ("." + path if path else ""))
    if module is None:
        if not _is_answered(path):  # imported only where that cannot fail: an import inside of a look-up would hide its error
            return ABSENT
        module = importlib.import_module("tritensor." + path)
    held = _names_held(module)
    return held[name] if name in held else _find_object(path, name)


def _is_answered(path: str) -> bool:
    """Whether a file answers a path, or functions are published in it."""
    return path in FILES or path in ADDED or path in NAMES_ONLY or path in namespaces or _has_file(path)


def is_here(path: str) -> bool:
    """Whether a path of PyTorch's tree can be imported: a file of ours answers it, or some of its names are here, or of what lies below it."""
    module = sys.modules.get("tritensor." + path, ABSENT)
    if module is not ABSENT:
        return module is not None
    # Tensor is a class, and listed beside the modules.
    if path not in FILES and (path not in recorded_names.recorded() or path == "Tensor"):
        return False
    above = path.rpartition(".")[0]
    if above in FILES and "tritensor." + above not in sys.modules:  # a file may make the modules below it
        importlib.import_module("tritensor." + above)
        return is_here(path)
    if _is_answered(path):
        return True
    noted = recorded_names.names_of(path)
    return any(n.home != path and find_name(path, name) is not ABSENT for name, n in noted.items()) or any(
        is_here(f"{path}.{c}") for c in recorded_names.children_of(path)
    )


def _has_file(path: str) -> bool:
    """Whether a file of ours has this very path. Folders are asked, one in the other, so that nothing is imported."""
    name, places = "tritensor", list(sys.modules["tritensor"].__path__)
    spec = None
    for part in path.split("."):
        name = f"{name}.{part}"
        spec = importlib.machinery.PathFinder.find_spec(name, places)
        if spec is None:
            return False
        places = list(spec.submodule_search_locations or ())
    return spec is not None


class LateImportFinder:
    """Imports the modules of ours that are imported late. Some get the `__getattr__` that the front door gave to those it loaded; and where files cannot be
    opened, because no descriptor or no memory is left, that is said (see ground/process/late_imports.py)."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("tritensor."):
            return None
        with loading(fullname):
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module  # wrapped, not subclassed: loaders differ by how the package was installed

            def run(module: types.ModuleType) -> None:
                if fullname.startswith("tritensor.kernels."):
                    unread.prepare(module)
                with loading(fullname):
                    execute(module)
                if fullname in self.names and "__getattr__" not in vars(module):
                    module.__getattr__ = module_getattr(fullname.removeprefix("tritensor."))  # type: ignore[method-assign]

            spec.loader.exec_module = run  # type: ignore[method-assign]
        return spec


class Finder:
    """Answers `import tritensor.<path>` where no file does. It is the last that Python asks."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("tritensor."):
            return None
        asked = fullname.removeprefix("tritensor.")
        if asked in COMMANDS:  # `python -m tritensor.doctor` asks for a module of that name
            return importlib.machinery.ModuleSpec(fullname, COMMAND_LOADER, origin=__file__)
        if not is_here(asked):
            if is_importing(sys._getframe(1)) and asked in recorded_names.recorded() and asked != "Tensor":
                refuse_module(asked)
            return None
        return importlib.machinery.ModuleSpec(fullname, LOADER, is_package=asked not in FILES)  # else `import tritensor.a.b` stops at a


class FunctionKeepingModule(NamedModule):
    """A module whose functions keep their names when the module of such a name below it is imported: PyTorch imports those before."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, types.ModuleType) and callable(vars(self).get(name))):
            super().__setattr__(name, value)


class Loader:
    """Makes a Path, or puts a file of this folder under the path that it answers."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        path = spec.name.removeprefix("tritensor.")
        return None if path in FILES else PathModule(path)

    def exec_module(self, module: types.ModuleType) -> None:
        path = module.__name__.removeprefix("tritensor.")
        above, _, last = module.__name__.rpartition(".")
        parent = sys.modules[above]
        if type(parent) is types.ModuleType and callable(vars(parent).get(last)):
            parent.__class__ = FunctionKeepingModule
        if path in FILES:
            real = importlib.import_module("tritensor." + FILES[path])
            if "__getattr__" not in vars(real):  # a file may serve two paths, and keeps the first one's
                real.__getattr__ = module_getattr(path)  # type: ignore[method-assign]
            real.__path__ = []  # what lies below is asked of the Finder
            sys.modules[module.__name__] = real


class CommandLoader:
    """Runs `python -m tritensor.doctor` as `tritensor doctor`; imported, the name is what COMMANDS says."""

    def get_code(self, fullname: str) -> types.CodeType:
        """What runpy runs as __main__; a process that it spawns, which runs it under another name, does nothing."""
        lines = (
            "import sys",
            "from tritensor.tools.command_line import main",
            "if __name__ == '__main__':",
            f"    sys.exit(main([{fullname.removeprefix('tritensor.')!r}, *sys.argv[1:]], 'python -m tritensor.{{}}'))",
        )
        return compile("\n".join(lines), f"<python -m {fullname}>", "exec")

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        place, _, name = COMMANDS[module.__name__.removeprefix("tritensor.")].partition(":")
        real = importlib.import_module(f"tritensor.{place}")
        sys.modules[module.__name__] = getattr(real, name) if name else real


FINDER: Any = Finder()
LOADER: Any = Loader()
COMMAND_LOADER: Any = CommandLoader()
