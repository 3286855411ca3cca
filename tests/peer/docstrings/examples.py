"""Runs the examples of docstrings statement by statement, in whatever library `import torch` gives, and notes what comes out."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import signal
import warnings
from typing import Any

import numpy as np

SECONDS = 20  # for one statement


class _TooLongError(Exception):
    pass


def _alarm(*_: Any) -> None:
    raise _TooLongError


def noted(value: Any) -> Any:
    """A value as JSON holds it: kinds, shapes, types and up to 64 numbers."""
    import torch

    if isinstance(value, torch.Tensor):
        try:
            numbers = [str(n) for n in value.detach().reshape(-1)[:64].to(torch.complex128).tolist()]
        except RuntimeError:
            numbers = None  # of a layout without plain elements
        return {"shape": list(value.shape), "type": _name(value.dtype), "numbers": numbers}
    if isinstance(value, torch.dtype):
        return _name(value)
    if isinstance(value, tuple | list):
        return [noted(v) for v in value]
    if isinstance(value, bool | int | str):
        return value if not isinstance(value, str) else value.replace("tritensor", "torch")
    return type(value).__name__


def _name(dtype: Any) -> str:
    return str(dtype).replace("tritensor.", "torch.")


def run(examples: list[str], seed: int) -> list[list[Any]]:
    """For each statement ["fine", what it gave or printed], or ["raised", class, message]."""
    import torch

    space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "math": math, "np": np, "numpy": np, "copy": copy}
    found: list[list[Any]] = []
    torch.manual_seed(seed)
    before = signal.signal(signal.SIGALRM, _alarm)
    for source in examples:
        printed = io.StringIO()
        signal.alarm(SECONDS)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    code = compile(source, "<docstring>", "eval")
                except SyntaxError:
                    exec(compile(source, "<docstring>", "exec"), space)
                    found.append(["fine", None])
                else:
                    found.append(["fine", noted(eval(code, space))])
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever an example raises, SystemExit among it
            found.append(["raised", type(error).__name__, str(error)[:200]])
        finally:
            signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.set_default_device(None)
    return found
