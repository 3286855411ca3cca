"""The process behind @on_stub(): imports test files once, forks for every test, sends back how it went."""

from __future__ import annotations

import faulthandler
import gc
import importlib.util
import os
import pickle
import reprlib
import signal
import sys
import tempfile
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any

from tests.lazily import Lazily
from tests.stub.child import ROOT, Outcome, Request


def _module(path: str, name: str) -> ModuleType:
    """The test file, imported under the name that pytest gives it."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        made = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(made)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _locals(trace: TracebackType | None) -> str:
    """The local variables of the frames that lie in the tests, since no assertion is rewritten here to show its parts."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 300
    short.maxdict = short.maxlist = short.maxtuple = 12
    lines = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if Path(code.co_filename).is_relative_to(ROOT / "tests") and code.co_filename != __file__:
            for name, value in trace.tb_frame.f_locals.items():
                try:
                    shown = short.repr(value)
                except Exception as error:  # a tensor of a lost device cannot be shown; the failure itself must be
                    shown = f"<repr failed: {type(error).__name__}>"
                lines.append(f"  {code.co_name}: {name} = {shown}")
        trace = trace.tb_next
    return "\n".join(["local variables:", *lines]) if lines else ""


def _failure(request: Request) -> str:
    """Run the test's body; the traceback, or "" where it passes."""
    from tests.stub import control

    if os.environ.get("TRITENSOR_LAZY", "0") not in ("", "0"):
        Lazily()  # as in the process that collects tests
    text = ""
    ignored: list[str] = []  # exceptions in finalizers, which Python only prints
    sys.unraisablehook = lambda it: ignored.append(f"{it.object!r}: " + "".join(traceback.format_exception(it.exc_value)))
    try:
        function: Any = sys.modules[request.module]
        for part in request.name.split("."):
            function = getattr(function, part)
        warnings.simplefilter("error")
        function(*request.args, **request.kwargs)
    except BaseException as error:  # pytest's own outcomes are BaseExceptions
        text = "".join(traceback.format_exception(error)) + _locals(error.__traceback__)
    text += "".join([f"\nraised where nothing can catch it, in {each}" for each in ignored])
    left = control.complaints()
    if left:
        text += "\nthe stub driver complained:\n  " + "\n  ".join(left)
    return text


def _in_child(request: Request, write: int, output: IO[bytes]) -> None:
    """The life of a fork: run, send the failure through the pipe, leave without any clean-up."""
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    faulthandler.enable()
    faulthandler.dump_traceback_later(request.seconds, exit=True)
    os.environ.update(request.environment)
    gc.freeze()
    gc.enable()
    answer = pickle.dumps(_failure(request))
    sys.stdout.flush()
    sys.stderr.flush()
    with os.fdopen(write, "wb") as pipe:
        pipe.write(answer)
    os._exit(0)


def _run(request: Request, connection: Connection) -> Outcome:
    try:
        _module(request.path, request.module)
    except BaseException as error:
        return Outcome(f"{request.path} cannot be imported on the stub:\n" + "".join(traceback.format_exception(error)), "")
    read, write = os.pipe()
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            try:
                os.close(read)
                connection.close()
                _in_child(request, write, output)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(1)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            answer = pipe.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        printed = output.read().decode(errors="replace")
    if answer:
        return Outcome(pickle.loads(answer), printed)
    how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code} (after {request.seconds} s it is ended)"
    return Outcome(f"the test's process {how}\n{printed}", "")


def main() -> None:
    """Serve until the other end is closed."""
    gc.disable()  # a fork's collector is to look at the test's objects, not to copy the server's pages; _in_child turns it on
    connection = Connection(int(sys.argv[1]))
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(tuple(_run(request, connection)))


if __name__ == "__main__":
    main()
