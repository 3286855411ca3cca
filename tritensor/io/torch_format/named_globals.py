"""The classes and functions that a checkpoint names, read without making any of them."""

from __future__ import annotations

import io
import pickletools
from typing import Any

from tritensor.ground.errors import CheckpointError
from tritensor.io import safe_globals, sources
from tritensor.io.torch_format import allowed_names
from tritensor.io.torch_format.archive import Archive


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The full names in one of torch.save's archives that `load` refuses with weights_only=True, sorted; `f` is a path or a binary file.

    Raises ValueError for a file of another format, CheckpointError for one that is damaged. Nothing of the file is run.
    """
    source = sources.opened(f)
    try:
        if sources.recognised(source.view, source.label) != "zip":
            raise ValueError(
                f"get_unsafe_globals_in_checkpoint: {source.label} is none of torch.save's archives; of another file load() tells what it wants"
            )
        named = _named(bytes(Archive(source.view, source.label).read("data.pkl")), source.label)
    finally:
        source.close(0)
    return sorted(
        f"{module}.{name}"
        for module, name in named
        if allowed_names.lookup(module, name) is None and safe_globals.found(module, name) is None
    )


def _named(pickle: bytes, label: str) -> set[tuple[str, str]]:
    """(module, name) of every GLOBAL, and of every STACK_GLOBAL whose parts are the strings that were pushed or fetched last."""
    found: set[tuple[str, str]] = set()
    texts: list[Any] = []  # what was pushed, None for what is no text
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
