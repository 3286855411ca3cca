"""@on_stub(): a test whose body runs on the stub driver, in a process of its own where kernels are compiled and not interpreted."""

from __future__ import annotations

import atexit
import functools
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.stub.build import environment

ROOT = Path(__file__).resolve().parent.parent.parent
_MARK = "TRITENSOR_STUB_SERVER"  # set in the server and its forks, where @on_stub() leaves the function as it is


class Request(NamedTuple):
    """What the server is to run: a function of a test file, with its arguments and its own environment."""

    path: str
    module: str
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    environment: dict[str, str]
    seconds: int


class Outcome(NamedTuple):
    """How it went. `failure`: the traceback, "" for success. `output`: what the body printed."""

    failure: str
    output: str


class _Server:
    """The process that has everything imported and forks once per test: a check costs a fork, not an import."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.stub.server", str(theirs.fileno())],
                cwd=ROOT,
                env=environment(**{_MARK: "1"}),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._pipe = Connection(ours.detach())
        atexit.register(self.close)

    def run(self, request: Request) -> Outcome:
        try:
            self._pipe.send(request)
            return Outcome(*self._pipe.recv())
        except (EOFError, ConnectionError) as error:
            code = self._process.wait(10)
            _server.cache_clear()  # the next test gets a fresh one
            return Outcome(f"the stub's server process ended with {code} ({error!r}); its own words are on stderr", "")

    def close(self) -> None:
        self._pipe.close()
        self._process.wait(10)


@cache
def _server() -> _Server:
    return _Server()


def on_stub(seconds: int = 120, **stub: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test's body on the stub driver. `stub`: STUB_DEVICES=2, ... (libcuda.c lists them) or any other environment variable.

    Each test gets a fork of its own: a fresh driver, nothing left by the test before, and a crash fails that test alone. Parameters
    and fixtures may be anything that pickles. The test fails on an exception, on a crash, after `seconds`, and on any complaint of the
    stub that the body has not taken (`control.complaints()`).
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        if _MARK in os.environ:
            return function

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            path = sys.modules[function.__module__].__file__
            own = {k: str(v) for k, v in stub.items()}
            outcome = _server().run(Request(str(path), function.__module__, function.__qualname__, args, kwargs, own, seconds))
            if outcome.output:
                print(outcome.output)
            if outcome.failure:
                pytest.fail(outcome.failure, pytrace=False)

        return run

    return decorate
