"""Targets of the tuner: every config that a call of an op asks for, with those worth trying in its place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tritensor.cuda.compiler.recorded_call import Call, call_of
from tritensor.ground import dtypes
from tritensor.ground.device import gpu
from tritensor.ops.replay.recorder import NotThere
from tritensor.ops.table import Op, Sample, registry
from tritensor.ops.tuning import query
from tritensor.ops.tuning.config_choice import Choice, forced_at
from tritensor.ops.tuning.gpu_calls import attributes, blank, corners, typed
from tritensor.ops.tuning.tunables import known
from tritensor.ops.tuning.tuned import Place


class SpaceError(Exception):
    """A config space that raises, or gives what the kernel does not take; the message names whose it is."""


class ShapesError(ValueError):
    """A file of shapes that cannot be used; the message names it and the mend."""


class Target(NamedTuple):
    """One config to be found: for what entry, in which call of the op, the rule's config and the others worth trying (each once)."""

    place: Place
    dtype: str
    number: int  # of the op's call, among those that `calls_of` gives
    heuristic: Any
    candidates: tuple[Any, ...]

    @property
    def name(self) -> str:
        return str(self.place)


def calls_of(op: Op, shapes: dict[str, list[Any]] | None, rng: Any) -> list[Sample]:
    """The calls of an op that are tuned: those that the file of shapes has, else the op's timed sizes. `rng` draws them."""
    if shapes is not None:
        return [_sample(call, rng) for call in shapes.get(op.name, [])]
    return list(op.sizes(rng)) if op.sizes is not None else []


def targets_of(op: Op, calls: Sequence[Sample], types: Sequence[str]) -> Iterator[Target]:
    """Every config that these calls ask for, once for each bucket. Raises SpaceError; whatever the op says of calls that it does not take."""
    seen: set[Place] = set()
    varies = any(getattr(x, "dtype", None) == np.float64 for s in calls for x in s.inputs)
    for dtype in [t for t in types if t in op.dtypes] or op.dtypes[:1]:
        for number, sample in enumerate(calls):
            for choice in query.choices(op, sample, dtype):
                if choice.place not in seen and (space := space_of(choice)) is not None:
                    seen.add(choice.place)
                    others = tuple(dict.fromkeys(c for c in space if c != choice.heuristic))
                    yield Target(choice.place, dtype, number, choice.heuristic, others)
        if not varies:  # no input's type could change
            return


def space_of(choice: Choice) -> Sequence[Any] | None:
    """The configs worth trying for a launch; None where nobody says."""
    kernel, key, default = choice.kernel, choice.key, choice.heuristic
    record = None if kernel in known else dict.get(registry, kernel)
    try:
        if kernel in known:
            found = list(known[kernel].space(key, default))
        elif record is not None and record.configs is not None:
            found = list(record.configs(key))
        else:
            return None
    except Exception as error:  # whatever the author's function raises: it is named, and the other ops are tuned
        raise SpaceError(
            f"{choice.op}: the configs of {kernel!r} for the key {key} cannot be had: {type(error).__name__}: {error}"
        ) from error
    for config in found:
        wrong = known[kernel].problem(config, key) if kernel in known and type(config) is type(default) else ""
        if type(config) is not type(default) or wrong:
            said = wrong or f"it takes a {type(default).__name__}, such as {default}"
            raise SpaceError(f"{choice.op}: the configs of {kernel!r} hold {config!r} for the key {key}: {said}")
    return found


def launches(op: Op, sample: Sample, target: Target, config: Any) -> tuple[Call, ...]:
    """The launches of the target's corner with a config, in order; the device's memory is only imagined. Whatever the corner raises comes through."""
    with forced_at({target.place: config}), query.imagined() as recorder:
        on = gpu(0)
        for corner, run in corners(op, blank(typed(op, sample.inputs, target.dtype), on), attributes(op, sample, on)):
            # forward runs for backward's sake, too, and is not what is tuned then
            before = len(recorder.calls)
            with suppress(NotThere):  # it looks into device memory from the host: what it launched until then counts
                run()
            if corner == target.place.corner:
                return tuple(call_of(c) for c in recorder.calls[before:])
    return ()


# Shapes from a file
def read_shapes(path: Path) -> dict[str, list[Any]]:
    """Calls by op from a JSON file: [{"op": "softmax", "inputs": [[4096, 1000]], "attrs": {"dim": -1}}, ...].

    An input is a shape (floats of the type under test), {"shape": [...], "dtype": "int64", "below": 10} for numbers from 0, a plain number, or
    null. Raises ShapesError.
    """
    try:
        rows = json.loads(path.read_text())
    except OSError as error:
        raise ShapesError(f"--shapes {path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ShapesError(f"--shapes {path}: is no JSON ({error})") from None
    found: dict[str, list[Any]] = {}
    form = 'each row is like {"op": "softmax", "inputs": [[4096, 1000]], "attrs": {"dim": -1}}'
    for i, row in enumerate(rows if isinstance(rows, list) else [rows]):
        if not isinstance(row, dict) or not isinstance(row.get("op"), str) or not isinstance(row.get("inputs"), list):
            raise ShapesError(f"--shapes {path}: row {i} is {json.dumps(row)[:80]}; {form}")
        if strange := set(row) - {"op", "inputs", "attrs"}:
            raise ShapesError(f"--shapes {path}: row {i} has {', '.join(sorted(strange))}; {form}")
        try:
            _sample(row, np.random.default_rng(0), dry=True)
        except (TypeError, ValueError, KeyError) as error:
            raise ShapesError(f"--shapes {path}: row {i}: {error}; {form}") from None
        found.setdefault(row["op"], []).append(row)
    return found


def _sample(row: dict[str, Any], rng: Any, dry: bool = False) -> Sample:
    attrs: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.get("attrs", {}).items()}
    return Sample(*[_input(x, rng, dry) for x in row["inputs"]], **attrs)


def _input(x: Any, rng: Any, dry: bool) -> Any:
    if x is None or isinstance(x, (int, float)):
        return x
    shape, dtype, below = (x["shape"], x.get("dtype", ""), x.get("below", 2)) if isinstance(x, dict) else (x, "", 0)
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError(f"a shape is whole numbers, not {shape}")
    kind = dtypes.as_dtype(dtype).numpy if dtype else np.dtype(np.float64)
    if dry:
        return np.broadcast_to(np.zeros((), kind), shape)
    if kind == np.float64:
        return rng.standard_normal(tuple(shape))
    return np.asarray(rng.integers(0, below, tuple(shape))).astype(kind)
