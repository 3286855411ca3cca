"""Imports of `torch`, `torchvision` and `functorch`, answered by tritensor: under `python -m tritensor.run`, and in an environment with the stand-in."""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tritensor.ground.call_site import use_library_name
from tritensor.ground.naming.named_module import NamedModule
from tritensor.torch_compat import missing
from tritensor.torch_compat.hints import hint_for
from tritensor.torch_compat.layer_names import note_layers

SUFFIX = "+tritensor"


class Answered(NamedTuple):
    """What stands for a package, the version that it says, and the distribution that the package comes with."""

    ours: str
    version: str
    distribution: str


STANDS_FOR = {
    "torch": Answered("tritensor", "2.13.0" + SUFFIX, "torch"),
    "functorch": Answered("tritensor.torch_compat.modules.functorch", "2.13.0" + SUFFIX, "torch"),
    "torchvision": Answered("tritensor.vision", "0.28.0" + SUFFIX, "torchvision"),
    "torchaudio": Answered("tritensor.audio", "2.11.0" + SUFFIX, "torchaudio"),
}


class Torch(NamedModule):
    """What `import torch` gives: tritensor under the name and with a version that scripts know how to compare; of `import torchvision`, its vision."""

    def __init__(self, ours: types.ModuleType, name: str, spec: importlib.machinery.ModuleSpec) -> None:
        super().__init__(name, ours.__doc__)
        folders = list(spec.submodule_search_locations or ())
        self.__dict__.update(
            _ours=ours, __version__=_version(name), __file__=spec.origin or ours.__file__, __path__=folders, __spec__=spec, __loader__=spec.loader,
            __package__=spec.parent,
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        if name == "version" and self.__name__ == "torch":
            value: Any = importlib.import_module("torch.version")
        else:
            try:
                value = getattr(self.__dict__["_ours"], name)
            except AttributeError:
                if self.__name__ == "torch" or name.startswith("__"):
                    raise
                _tell(self.__name__, name)
                ours = self.__dict__["_ours"].__name__
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}: not in {ours}") from None
        if not name.startswith("_"):  # found once: the next access does not come here
            self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(self._ours)


def _version(name: str) -> str:
    return STANDS_FOR[name.partition(".")[0]].version


def _tell(path: str, name: str) -> None:
    """Note a name that is missing, and who asked for it."""
    for listen in missing.listeners:
        listen(path, name, missing.calling_frame())


class Door:
    """Finds the packages that it answers, and everything below them, in tritensor; stands before all other finders, so that an installed one is never found."""

    def __init__(self, answers: Sequence[str] = tuple(STANDS_FOR)) -> None:
        self.specs: dict[str, importlib.machinery.ModuleSpec] = {}
        for name in answers:
            self.specs[name] = importlib.machinery.ModuleSpec(name, self, origin=_origin(name), is_package=True)  # type: ignore[arg-type]
        # What is written on disk has metadata on disk, too.
        self.is_installed = False

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        root, _, below = fullname.partition(".")
        if root not in self.specs:
            return None
        if not below:
            return self.specs[root]
        if not _is_found(_ours(fullname)):
            if not missing.is_importing(sys._getframe(1)):  # importlib.util.find_spec: whether it is there
                return None
            above, _, last = (below if root == "torch" else fullname).rpartition(".")
            _tell(above, last)
            said = hint_for(below, "") if root == "torch" else ""
            raise ModuleNotFoundError(f"No module named {fullname!r}: not in tritensor" + (f": {said}" if said else ""), name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        real = importlib.import_module(_ours(name))
        spec = module.__spec__
        sys.modules[name] = Torch(real, name, spec) if spec and (name in STANDS_FOR or name == "torch.version") else real

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """What `importlib.metadata.version("torch")` asks: packages that choose by what is installed are told what `torch.__version__` says."""
        from tritensor.torch_compat.answered_package import AnsweredPackage, normalize

        if self.is_installed:
            return
        for name, answered in STANDS_FOR.items():
            if name == answered.distribution and (context is None or context.name is None or normalize(context.name) == name):
                packages = [n for n, a in STANDS_FOR.items() if a.distribution == name]
                yield AnsweredPackage(name, answered.version, packages)


def _ours(name: str) -> str:
    """The module of tritensor that answers a name."""
    root, _, below = name.partition(".")
    return ".".join(filter(None, (STANDS_FOR[root].ours, below)))


def _is_found(ours: str) -> bool:
    """Whether a module of tritensor is here; the packages above it are imported for that, as Python does."""
    if ours in sys.modules:
        return sys.modules[ours] is not None
    try:
        return importlib.util.find_spec(ours) is not None
    except ModuleNotFoundError as error:  # one above it is not here
        if error.name is None or not (ours + ".").startswith(error.name + "."):
            raise
        return False


def _origin(name: str) -> str:
    """The file of what answers a package, found without importing it."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(folder, *STANDS_FOR[name].ours.split(".")[1:], "__init__.py")


_installed = Door(())  # the door of the packages that are written on disk


def answer_for_good(module: types.ModuleType) -> None:
    """Put tritensor in the place of a package of the stand-in that is being imported, to the end of the process."""
    spec = module.__spec__
    if spec is None:
        raise ImportError(f"{module.__name__}: the stand-in's file is no script; write `import {module.__name__}`")
    if _installed not in sys.meta_path:
        _installed.is_installed = True
        sys.meta_path.insert(0, _installed)  # type: ignore[arg-type]
        note_layers()
        _kept.enter_context(use_library_name("torch"))
    _installed.specs[spec.name] = spec
    _installed.exec_module(module)


_kept = contextlib.ExitStack()  # never closed
