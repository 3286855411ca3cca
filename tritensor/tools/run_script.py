"""Runs an unchanged PyTorch script: in this process alone, tritensor answers `import torch` and `torchvision`. What is missing is listed at the end."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import importlib
import importlib.machinery
import multiprocessing.spawn
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.ground.call_site import use_library_name
from tritensor.tools import missing_names
from tritensor.torch_compat import missing

SUFFIX = "+tritensor"
# What stands for a package, and the version that it says.
STANDS_FOR = {"torch": ("tritensor", "2.13.0"), "torchvision": ("tritensor.vision", "0.28.0")}


class Torch(types.ModuleType):
    """What `import torch` gives: tritensor under the name and with a version that scripts know how to compare; of `import torchvision`, its vision."""

    def __init__(self, ours: types.ModuleType, name: str) -> None:
        super().__init__(name, ours.__doc__)
        version = STANDS_FOR[name.partition(".")[0]][1]
        self.__dict__.update(_ours=ours, __version__=version + SUFFIX, __file__=ours.__file__, __path__=[])

    def __getattr__(self, name: str) -> Any:
        if name == "version" and self.__name__ == "torch":
            return importlib.import_module("torch.version")
        try:
            return getattr(self.__dict__["_ours"], name)
        except AttributeError:
            if self.__name__ == "torchvision" and not name.startswith("__"):
                _tell(self.__name__, name)
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}: not in tritensor.vision") from None
            raise

    def __dir__(self) -> list[str]:
        return dir(self._ours)


def _tell(path: str, name: str) -> None:
    """Note a name that is missing, and who asked for it."""
    for listen in missing.listeners:
        listen(path, name, missing.calling_frame())


class Door:
    """Finds `torch`, `torchvision` and everything below in tritensor; stands before all other finders, so that an installed one is never found."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in STANDS_FOR:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        root, _, below = name.partition(".")
        ours = ".".join(filter(None, (STANDS_FOR[root][0], below)))
        try:
            real = importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name is None or not (ours + ".").startswith(error.name + "."):
                raise
            above, _, last = (below if root == "torch" else name).rpartition(".")
            _tell(above, last)
            raise ModuleNotFoundError(f"No module named {name!r}: not in tritensor", name=name) from None
        sys.modules[name] = Torch(real, name) if name in ("torch", "torch.version", "torchvision") else real

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """What `importlib.metadata.version("torch")` asks: packages that choose by what is installed are told what `torch.__version__` says."""
        from tritensor.tools.answered_package import AnsweredPackage, normalize

        for name, (_, version) in STANDS_FOR.items():
            if context is None or context.name is None or normalize(context.name) == name:
                yield AnsweredPackage(name, version + SUFFIX)


def main(argv: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Run a script with its arguments; returns the exit code that it would have had, or ends the process as it would."""
    parser.usage = f"{parser.prog} script.py [arguments]\n       {parser.prog} -m module [arguments]"
    argv = list(argv)
    if not argv or argv == ["-m"]:
        parser.print_help(sys.stderr)
        return 2
    if argv[0] in ("-h", "--help"):
        parser.parse_args(argv[:1])
    if argv[0] != "-m" and not os.path.exists(argv[0]):
        print(f"{sys.executable}: can't open file {os.path.abspath(argv[0])!r}: [Errno 2] No such file or directory", file=sys.stderr)
        return 2
    with opened() as asked:
        run = _module(argv[1], argv[1:]) if argv[0] == "-m" else _script(argv[0], argv)
        try:
            return _run_guarded(run)
        finally:
            sys.stdout.flush()  # the list comes after what the script wrote
            report = missing_names.report(asked)
            if report:
                print(report, file=sys.stderr)


@contextlib.contextmanager
def opened() -> Iterator[list[missing_names.Place]]:
    """Within the `with`, `import torch` gives tritensor; the list grows by what is asked for and missing."""
    asked: list[missing_names.Place] = []

    def note(path: str, name: str, frame: types.FrameType | None) -> None:
        asked.append(missing_names.place(path, name, frame))

    # A torch that was imported before comes back afterwards.
    before = {n: sys.modules.pop(n) for n in list(sys.modules) if n.partition(".")[0] in STANDS_FOR}
    door: Any = Door()
    sys.meta_path.insert(0, door)  # first: an installed torch is not to answer
    missing.listeners.append(note)
    prepare = multiprocessing.spawn.get_preparation_data
    multiprocessing.spawn.get_preparation_data = lambda name: {"tritensor": _Reopened(), **prepare(name)}
    try:
        with use_library_name("torch"):
            yield asked
    finally:
        multiprocessing.spawn.get_preparation_data = prepare
        missing.listeners.remove(note)
        sys.meta_path.remove(door)
        for n in [n for n in sys.modules if n.partition(".")[0] in STANDS_FOR]:
            del sys.modules[n]
        sys.modules.update(before)


class _Reopened:
    """Among what a spawned process is told before it imports the script: `import torch` gives tritensor there as well."""

    def __reduce__(self) -> Any:
        return _open_for_good, ()


def _open_for_good() -> None:
    _kept.enter_context(opened())
    atexit.register(_kept.close)


_kept = contextlib.ExitStack()  # in a spawned process: open to its end


def _script(path: str, argv: list[str]) -> Callable[[], object]:
    """The script as `__main__`, as Python runs it: by an absolute name, its folder first on the path."""
    sys.argv = argv
    if os.path.isdir(path) or (not path.endswith((".py", ".pyw")) and _is_archive(path)):
        import runpy

        return lambda: runpy.run_path(path, run_name="__main__")
    sys.path[0] = os.path.dirname(os.path.realpath(path))  # in place of the command's own folder, as Python itself sets it
    file = os.path.abspath(path)
    main_module: Any = types.ModuleType("__main__")
    main_module.__file__, main_module.__builtins__, main_module.__cached__ = file, sys.modules["builtins"], None
    main_module.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    sys.modules["__main__"] = main_module

    def run() -> None:
        with open(file, "rb") as source:
            code = compile(source.read(), file, "exec")  # bytes: the file's own coding line is heeded
        exec(code, main_module.__dict__)

    return run


def _is_archive(path: str) -> bool:
    import zipfile

    return zipfile.is_zipfile(path)


def _module(name: str, argv: list[str]) -> Callable[[], object]:
    """A module as `__main__`, as `python -m` runs it: the working directory first on the path."""
    import runpy

    sys.argv = argv
    sys.path[0] = os.getcwd()
    return lambda: runpy._run_module_as_main(name)  # type: ignore[attr-defined]


def _run_guarded(run: Callable[[], object]) -> int:
    """Run; errors are told as Python tells them, from the script's own first line on."""
    try:
        run()
    except SystemExit:
        raise
    except BaseException as error:
        told = _trim_frames(error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            sys.excepthook(type(error), error, told)
            return 130
        if sys.excepthook is sys.__excepthook__:
            traceback.print_exception(type(error), error, told)  # Python's own hook would not shorten a syntax error's
        else:
            sys.excepthook(type(error), error, told)
        return 1
    return 0


def _trim_frames(frames: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without this file's own frames; runpy's stay, as they do in Python's own `-m`."""
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return frames
