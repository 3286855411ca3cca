"""Tuned files, `kernels/tuned/<gpu>.json`: their form, which one serves a device, the config that one has for a launch."""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from tritensor.cuda.runtime import active
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here
from tritensor.ops import replay
from tritensor.ops.array import CudaArray
from tritensor.ops.table import registry
from tritensor.ops.table.lookup import plugins_read
from tritensor.ops.tuning.buckets import bucket_of, dtype_of
from tritensor.ops.tuning.tunables import known

SCHEMA = 1
CORNERS = ("forward", "backward", "")  # the last: launches outside of ops
_KINDS = {int: "a whole number", bool: "true or false", str: "a word", float: "a number"}
FOLDER = Path(__file__).resolve().parents[2] / "kernels" / "tuned"
VARIABLE = "TRITENSOR_TUNED"


class TunedFileError(ValueError):
    """A tuned file that cannot be used; the message names it, what is wrong with it, and the mend."""


class Entry(NamedTuple):
    """What was found for one bucket: the config's fields (or a number), the time of the call with it, and the heuristic's time over that."""

    config: Any
    us: float
    gain: float


class Place(NamedTuple):
    """What an entry is for. In a file it is the entry's name, its parts joined by " | "."""

    op: str
    corner: str
    kernel: str
    dtype: str
    bucket: str

    def __str__(self) -> str:
        return " | ".join(self)


class Header(NamedTuple):
    """The head of a file: the GPU by the name that its driver gives, what measured, when (a day, ISO 8601)."""

    gpu: str
    triton: str
    date: str


def slug(gpu: str) -> str:
    """A GPU's name as a file's: NVIDIA H200 is nvidia-h200."""
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")


# The file
def written(header: Header, entries: dict[Place, Entry]) -> str:
    """A file's text: sorted, a line for each entry, so that a diff of two reads."""
    head = {"schema": SCHEMA, **header._asdict()}
    lines = [f' "{k}": {json.dumps(v)},' for k, v in head.items()]
    rows = [
        f"  {json.dumps(str(p))}: {json.dumps({'config': e.config, 'us': round(e.us, 3), 'gain': round(e.gain, 4)})}"
        for p, e in sorted(entries.items())
    ]
    return "{\n" + "\n".join(lines) + '\n "entries": {\n' + ",\n".join(rows) + "\n }\n}\n"


def header_now(gpu: str) -> Header:
    """The head of a file that is written today."""
    import triton

    return Header(gpu, triton.__version__, date.today().isoformat())


def read(path: Path) -> tuple[Header, dict[Place, Entry]]:
    """What a file holds. Raises TunedFileError for one that is missing, damaged, or of another schema."""
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise TunedFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # the latter: brackets without end
        raise TunedFileError(f"{path}: damaged, no JSON ({error}); write it anew with `tritensor tune --out {path}`") from None
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        said = "no file of `tritensor tune`" if schema is None else f"of schema {schema!r}, and this is a tritensor of schema {SCHEMA}"
        newer = "install a newer tritensor, or " if isinstance(schema, int) and schema > SCHEMA else ""
        raise TunedFileError(f"{path}: {said}; {newer}write it anew with `tritensor tune --out {path}`")
    try:
        if not isinstance(found["entries"], dict):
            raise ValueError(f"its entries are a {type(found['entries']).__name__}, no table by name")
        header = Header(*[str(found[k]) for k in Header._fields])
        entries = {_place(name): _entry(name, row) for name, row in found["entries"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise TunedFileError(f"{path}: damaged: {said}; write it anew with `tritensor tune --out {path}`") from None
    return header, entries


def _place(name: str) -> Place:
    parts = name.split(" | ")
    if len(parts) != len(Place._fields):
        raise ValueError(f"entry {name!r} is not `op | corner | kernel | type | bucket`")
    return Place(*parts)


def _explain_misnamed(place: Place) -> str:
    """Why no launch of an op asks for an entry, whatever its op: a word that is none; "" where its words are known."""
    if place.corner not in CORNERS:
        return f"{place.corner!r} is no corner; there are {', '.join(c for c in CORNERS if c)}"
    if place.dtype != "any" and place.dtype not in [t.name for t in dtypes.ALL]:
        return f"{place.dtype!r} is no element type; float32 is one"
    return ""


def _entry(name: str, row: Any) -> Entry:
    if not isinstance(row, dict) or set(row) != set(Entry._fields) or not isinstance(row["config"], (dict, int)):
        raise ValueError(f"entry {name!r} does not hold config, us and gain alone")
    for field in ("us", "gain"):
        value = row[field]
        # JSON's true is a number to Python
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ValueError(f"entry {name!r} has {field} {value!r}, where a number of 0 or more belongs")
    return Entry(row["config"], float(row["us"]), float(row["gain"]))


def fields_of(config: Any) -> Any:
    """A config as a file has it: its fields by name, or the number that it is."""
    return config._asdict() if hasattr(config, "_asdict") else config


def config_from(fields: Any, default: Any, kernel: str, key: tuple[Any, ...] | None) -> Any:
    """A config of the class of `default` from a file's fields. Raises ArgumentError where fields are unknown, missing or wrong."""
    names = list(getattr(default, "_fields", ()))
    if isinstance(fields, dict) != bool(names):
        raise ArgumentError(f"{kernel} takes {'fields ' + ', '.join(names) if names else 'a number'}, not {fields!r}")
    if names and set(fields) != set(names):
        raise ArgumentError(f"its fields are {', '.join(sorted(fields))}, and those of {kernel} are {', '.join(names)}")
    config = type(default)(**fields) if names else fields
    for field, value, model in zip(names or ["its value"], config if names else [config], default if names else [default], strict=True):
        # exact: a True among tile sizes would pass as 1
        if type(value) is not type(model):
            raise ArgumentError(f"{field} is {value!r}, and {kernel} takes {_KINDS.get(type(model), type(model).__name__)} there")
    if kernel in known and (wrong := known[kernel].problem(config, key)):
        raise ArgumentError(wrong)
    return config


def unknown_ops(entries: Iterable[Place]) -> list[str]:
    """The ops among entries that are neither in the table nor of an installed package."""
    strange = {p.op for p in entries if p.op not in registry.index and not dict.__contains__(registry, p.op)}
    if strange:
        with plugins_read():
            strange = {op for op in strange if not dict.__contains__(registry, op)}
    return sorted(strange)


# The file of a device
_tables: dict[str, tuple[Path, dict[Place, Entry]] | None] = {}  # by the device's name; None: it has none
_names: dict[int, str] = {}  # by the device's number
_lock = locks.lock()


def entry(kernel: str, key: tuple[Any, ...], default: Any) -> Any:
    """The config that the current device's tuned file has for a launch, or None."""
    index = _index()
    name = _names.get(index)
    if name is None:
        name = _names[index] = _device_name(index)
    if name not in _tables:
        with _lock:
            if name not in _tables:
                loaded = None
                try:
                    loaded = _load(name)
                finally:
                    _tables[name] = loaded  # also where a warning is made an error: the file is named once
    table = _tables[name]
    if table is None:
        return None
    path, entries = table
    op, _, corner = here.doing.partition(" ")
    place = Place(op, corner, kernel, dtype_of(key), bucket_of(key))
    found = entries.get(place)
    if found is None:
        return None
    try:
        here.config = f"{path}: {str(place)!r}"
        return config_from(found.config, default, kernel, key)
    except ArgumentError as error:
        here.config = ""
        # so that the line is named once, not at each recording
        entries.pop(place, None)
        _tell(f"{path}: entry {str(place)!r} is not used: {error}; the heuristic serves; remove the line or tune anew")
        return None


def _index() -> int:
    """The GPU that a launch is for: that of the arrays of the call that is recorded, else the current one."""
    arrays = here.recorder.inputs if here.recorder is not None else ()
    on = next((x.device.index for x in arrays if isinstance(x, CudaArray)), None)
    return here.index if on is None else on


def _device_name(index: int) -> str:
    """The GPU's name; "" for a device that is emulated or only recorded, which no GPU's times are true of."""
    if active.emulated():
        return ""
    serves = active.runtime()
    return serves.device_name(index) if hasattr(serves, "kernels") else ""


def _load(gpu: str) -> tuple[Path, dict[Place, Entry]] | None:
    """The entries for a GPU ("": none is there): of the file that TRITENSOR_TUNED names, else of the GPU's own. None where there is no file.

    A file that cannot be used is told in a warning and the heuristics serve. It does not raise: a tuned file changes how fast a kernel runs and
    not what it computes, so a run of days must not end over a torn one, least of all at a shape that first comes in its second epoch. The
    warning names the file and says what serves in its place, so nothing is silent.
    """
    named = os.environ.get(VARIABLE)
    if named == "" or (named is None and not gpu):
        return None
    path = Path(named) if named else FOLDER / f"{slug(gpu)}.json"
    if named is None and not path.exists():
        return None
    try:
        header, entries = read(path)
        if gpu and slug(header.gpu) != slug(gpu):
            raise TunedFileError(
                f"{path}: made on {header.gpu}, and this GPU is {gpu}; tune this one with `tritensor tune`, or unset {VARIABLE}"
            )
    except TunedFileError as error:
        _tell(f"{error}. The heuristics serve until then")
        return None
    if strange := unknown_ops(entries):
        _tell(
            f"{path}: no op is called {', '.join(strange)}; their entries are not used: import the package that has them, or remove the lines"
        )
    for place in entries:
        if place.op not in strange and (wrong := _explain_misnamed(place)):
            _tell(f"{path}: entry {str(place)!r} is not used: {wrong}; remove the line or tune anew")
    return path, entries


def _tell(text: str) -> None:
    warnings.warn(f"tuning: {text}", stacklevel=2)


def forget() -> None:
    """Look for tuned files anew: another runtime serves, or a file has changed."""
    _tables.clear()
    _names.clear()
    replay.forget()


active.when_changed.append(lambda: (_tables.clear(), _names.clear()))  # type: ignore[arg-type,func-returns-value]
