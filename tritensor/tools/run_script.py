"""Runs an unchanged PyTorch script: in this process alone, tritensor answers `import torch` and `torchvision`. What is missing is listed at the end."""

from __future__ import annotations

import argparse
import atexit
import contextlib
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
from tritensor.torch_compat.door import STANDS_FOR, Door
from tritensor.torch_compat.layer_names import note_layers


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
    note_layers()
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
