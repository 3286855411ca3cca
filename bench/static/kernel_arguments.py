"""Arguments of a kernel in words of a command line: `x=*bf16[4096,4096],n=4096`, `BLOCK=1024,num_warps=4`, a grid in names."""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ops.array import CudaArray, empty

LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")  # what a config holds beside the kernel's own parameters


class Refused(ValueError):
    """A command line that cannot be done: one line, with the mend."""


class Unknown(NamedTuple):
    """A number whose type is known and whose value is not: "n=i32", "n=i64:16" (divisible by 16)."""

    type: str
    divisible: bool


def pieces(text: str) -> list[str]:
    """`text` cut at its commas, those within brackets and quotes left alone."""
    found, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            found.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*found, text[start:]] if p.strip()]


def pairs(text: str, option: str, example: str) -> dict[str, str]:
    """Names and what stands behind their first "="."""
    found: dict[str, str] = {}
    for piece in pieces(text):
        name, equals, value = piece.partition("=")
        if not equals or not name.strip().isidentifier() or not value.strip():
            raise Refused(f"{option}: {piece!r} is no name=value; write {example}")
        if name.strip() in found:
            raise Refused(f"{option}: {name.strip()} is given twice in {text!r}")
        found[name.strip()] = value.strip()
    return found


def config(text: str) -> dict[str, Any]:
    """A config: "BLOCK=1024,num_warps=4" is {"BLOCK": 1024, "num_warps": 4}; a word that is no Python value is a string.

    Raises Refused for what is no name=value, and for a launch option that is no whole number.
    """
    found = {name: _value(value) for name, value in pairs(text, "--config", "--config BLOCK=1024,num_warps=4").items()}
    for name in LAUNCH_OPTIONS:
        if name in found and (not isinstance(found[name], int) or found[name] < 1):
            raise Refused(f"--config: {name} is {found[name]!r}; a whole number from 1 up, such as {name}=4")
    return found


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


_ARRAY = re.compile(r"\*(\w+)(?::(1|16))?\[([\d,\s]*)\]")
_NUMBER = re.compile(r"([iu](?:1|8|16|32|64)|fp16|bf16|fp32|fp64)(:16)?(?:=(.+))?")
_FORMS = "an array x=*bf16[4096,4096], a number n=4096, n=i64=4096 or n=i32:16 (value unknown), a constexpr BLOCK=1024, or None"


def arguments(text: str) -> dict[str, Any]:
    """Launch arguments: "x=*bf16[4096,4096],n=4096" is {"x": an array without memory, "n": 4096}.

    *type[shape] is an array at an address that divides by 16 (:16 behind the type says so, too; :1 one that does not), of Triton's type names;
    a plain number is what Python would pass; i32=4096 a number of just this type; i32 or i32:16 one whose value is not known; None, text in quotes and
    any other Python value go to the kernel as they are. Needs a runtime that serves device cuda. Raises Refused, naming the piece.
    """
    return {name: _argument(name, value) for name, value in pairs(text, "--args", "--args 'x=*bf16[4096,4096],n=4096'").items()}


def _argument(name: str, text: str) -> Any:
    if text.startswith("*"):
        return _array(name, text)
    number = _NUMBER.fullmatch(text)
    if number is not None:
        kind, divisible, value = number.groups()
        if value is None:
            return Unknown(kind, divisible is not None)
        read = _value(value)
        if not isinstance(read, (int, float)) or (kind[0] in "iu" and not isinstance(read, int)):
            raise Refused(f"--args: {name}={text}: {value!r} is no {kind}")
        return dtypes.as_dtype(_known(name, kind)).numpy.type(read) if kind != "i32" else int(read)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise Refused(f"--args: {name}={text} is none of: {_FORMS}") from None


def _array(name: str, text: str) -> CudaArray:
    found = _ARRAY.fullmatch(text)
    if found is None:
        raise Refused(f"--args: {name}={text}: an array is written *type[shape], such as {name}=*bf16[4096,4096]")
    dtype = dtypes.as_dtype(_known(name, found[1])).numpy
    shape = tuple(int(n) for n in found[3].split(",") if n.strip())
    whole = empty((math.prod(shape) + 1,), dtype, device("cuda", 0))
    return CudaArray(whole.storage, shape, dtype, None, int(found[2] == "1"))  # type: ignore[union-attr]


def _known(name: str, kind: str) -> str:
    """Our name of a type by Triton's."""
    names = {d.triton: d.name for d in dtypes.ALL if d.triton}
    if kind in names:
        return names[kind]
    raise Refused(f"--args: {name}: no type is called {kind!r}{nearest(kind, names)}; Triton's names are {', '.join(names)}")


def nearest(word: str, names: Iterable[str]) -> str:
    """ " (did you mean x?)" where a name is near."""
    near = difflib.get_close_matches(word, list(names), 1, 0.5)
    return f" (did you mean {near[0]}?)" if near else ""


def known_value(value: Any) -> Any:
    """What stands in for a number whose value is not known."""
    if not isinstance(value, Unknown):
        return value
    if value.divisible:
        return 16
    return 1 if value.type == "i32" else np.dtype(dtypes.as_dtype(_known("", value.type)).numpy).type(1)


def grid_of(text: str, names: dict[str, Any]) -> tuple[int, ...]:
    """A grid: "4096", "cdiv(n, BLOCK)", "cdiv(M, BM), cdiv(N, BN)": whole numbers in names of arguments and config. Raises Refused."""
    usable = {k: v for k, v in names.items() if isinstance(v, (int, np.integer))}
    try:
        found = eval(
            text, {"__builtins__": {}}, {"cdiv": lambda a, b: -(-a // b), "min": min, "max": max, **usable}
        )  # their own command line
    except Exception as error:  # whatever it raises, the line says what may stand there
        raise Refused(
            f"--grid {text!r}: {type(error).__name__}: {error}; names with known values are {', '.join(usable) or 'none'}, and cdiv"
        ) from None
    grid = found if isinstance(found, tuple) else (found,)
    if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in grid) or not 1 <= len(grid) <= 3:
        raise Refused(f"--grid {text!r} is {found!r}; one to three whole numbers")
    return tuple(int(n) for n in grid)


def check_names(given: dict[str, Any], parameters: Collection[str], kernel: str) -> None:
    """Raise Refused for a name in a config that the kernel does not have."""
    for name in given:
        if name not in parameters and name not in LAUNCH_OPTIONS:
            raise Refused(
                f"--config: {kernel} has no parameter {name}{nearest(name, [*parameters, *LAUNCH_OPTIONS])}; "
                f"it has {', '.join(parameters)}, and a launch {', '.join(LAUNCH_OPTIONS)}"
            )
