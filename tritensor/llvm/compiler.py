"""LLVM's intermediate language to a function that ctypes calls: compiled and linked by the LLVM inside Triton, kept beside Triton's own cache.

Triton carries LLVM for its own host beside that for GPUs (its kernels' launchers are no use here: nothing of it knows tensors). What is used of it
is not public, so `refusal` first tries it in a process of its own; where it fails, on other processors than x86-64 and aarch64, and with
TRITENSOR_NATIVE=0, numpy computes alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tritensor.ground.process import locks
from tritensor.ground.process.late_imports import is_out_of_descriptors, loading, out_of_descriptors_error
from tritensor.ground.process.ownership import is_foreign_file


class Level(NamedTuple):
    """A kind of processor that code is made for: what LLVM calls it, how many float32 one turn of a loop takes (some vectors side by side, which do not
    wait for each other), and what /proc/cpuinfo calls the features that it has to have."""

    cpu: str
    lanes: int
    features: frozenset[str] = frozenset()


class _Machine(NamedTuple):
    """What LLVM calls a machine, and its part for it; its levels, the best first."""

    triple: str
    part: str
    levels: dict[str, Level]


# System V ABI for x86-64, section 3.1.1; of older ones none has float16, nor products that are added with one rounding, on which the functions stand.
_V3 = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_X86 = _Machine("x86_64-unknown-linux-gnu", "X86", {"x86-64-v4": Level("x86-64-v4", 64, _V4), "x86-64-v3": Level("x86-64-v3", 32, _V3)})
_ARM = _Machine("aarch64-unknown-linux-gnu", "AArch64", {"armv8-a": Level("generic", 16)})
_MACHINES = {"x86_64": _X86, "AMD64": _X86, "aarch64": _ARM}
_PARTS = ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser")
_TRIAL_SECONDS = 120  # seconds that the trial may take
_FOLDER_VARIABLES = ("TRITON_CACHE_DIR", "TRITON_HOME")  # who names a folder trusts it
_DIGEST = 32  # bytes of SHA-256, which is imported when something is compiled or loaded
_PROBE = "define i64 @run(i64 %n) {\n  %m = add i64 %n, 1\n  ret i64 %m\n}\n"


@functools.cache
def processor() -> str | None:
    """The level of this processor; None where it has none."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return None
    try:
        with loading("machine code"):
            text = Path("/proc/cpuinfo").read_text()
    except (FileNotFoundError, PermissionError):
        text = ""
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    features = set(line.partition(":")[2].split())
    return next((name for name, level in machine.levels.items() if level.features <= features), None)


def lesser_levels() -> list[str]:
    """The levels that this processor has beside its own."""
    machine, own = _MACHINES.get(platform.machine()), processor()
    names = [] if machine is None else list(machine.levels)
    return names[names.index(own) + 1 :] if own in names else []


def lanes() -> int:
    """How many float32 one turn of a loop takes."""
    levels = {name: level for machine in _MACHINES.values() for name, level in machine.levels.items()}
    return levels[processor() or "x86-64-v3"].lanes


@functools.cache
def refusal() -> str:
    """Why nothing is compiled for this processor; "" where it is."""
    if os.environ.get("TRITENSOR_NATIVE", "1") == "0":
        return "TRITENSOR_NATIVE=0"
    if processor() is None:
        return f"a processor that is neither x86-64 with AVX2 nor aarch64: {platform.machine()}"
    # the trial runs in a process of its own, since a crash of LLVM cannot be caught; its answer is remembered on disk
    kept = _cache(_key("probe", _PROBE))
    if kept is None or kept.get_file("works") is None:
        import subprocess  # late, and tempfile below: most processes find all that they need in the cache

        command = "from tritensor.llvm import compiler; raise SystemExit(compiler.build(compiler._PROBE)(41) != 42)"
        path = os.pathsep.join(p or str(Path.cwd()) for p in sys.path)
        try:
            done = subprocess.run(
                [sys.executable, "-c", command],
                capture_output=True,
                text=True,
                timeout=_TRIAL_SECONDS,
                env={**os.environ, "PYTHONPATH": path},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            if isinstance(error, OSError) and is_out_of_descriptors(error):  # and not an answer that would be remembered
                raise out_of_descriptors_error("machine code", error) from error
            return f"the trial did not end: {error}"
        if done.returncode:
            return f"Triton {_triton_version()} does not compile for it: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
        with contextlib.suppress(OSError):  # where nothing can be kept, each process tries anew
            if kept is not None:
                kept.put(b"", "works")
    return ""


def _key(kind: str, text: str) -> str:
    import hashlib

    return hashlib.sha256("\n".join((kind, _triton_version(), processor() or "", text)).encode()).hexdigest()


@functools.cache
def _triton_version() -> str:
    """Triton's version, read in its source: what is kept is found without importing it."""
    spec = importlib.util.find_spec("triton")
    with loading("machine code"):
        source = Path(spec.origin).read_text(encoding="utf-8") if spec is not None and spec.origin else ""
    written = re.search(r"""^__version__ = ['"]([^'"]+)['"]""", source, re.MULTILINE)
    if written is None:
        import triton

        return str(triton.__version__)
    return written[1]


class _Kept:
    """A folder of Triton's cache: a file for each name in it."""

    def __init__(self, key: str) -> None:
        root = os.environ.get("TRITON_CACHE_DIR") or os.path.join(os.environ.get("TRITON_HOME") or Path.home(), ".triton", "cache")
        self.folder = Path(root, key)
        self.folder.mkdir(parents=True, exist_ok=True)

    def get_file(self, name: str) -> str | None:
        path = self.folder / name
        return str(path) if path.exists() else None

    def put(self, data: bytes, name: str) -> str:
        """Write a file, whole or not at all; returns its path."""
        import tempfile

        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as beside:
            beside.write(data)
        os.replace(beside.name, self.folder / name)
        return str(self.folder / name)


def _cache(key: str) -> _Kept | None:
    """The folder of a key; None where it cannot be made: what is compiled then serves this process alone."""
    try:
        return _Kept(key)
    except (OSError, RuntimeError):  # a user without a home directory
        return None


_compiling = locks.held_over_forks()  # LLVM's linker serves one caller at a time


@functools.cache
def _backend() -> tuple[Callable[[str], bytes], Callable[[str, str], None]]:
    """(intermediate language to an object file, object file to a shared library)."""
    import triton._C.libtriton as libtriton
    from triton._C.libtriton import amd, llvm

    machine = _MACHINES[platform.machine()]
    llvm.init_targets()
    symbols = ctypes.CDLL(libtriton.__file__)
    for part in _PARTS:  # LLVM's own C interface; Triton to 3.8 does it in init_targets
        getattr(symbols, f"LLVMInitialize{machine.part}{part}", lambda: None)()
    newest = (False,) if (llvm.translate_to_asm.__doc__ or "").count(": bool") > 2 else ()  # a switch more since Triton 3.8

    def assembled(text: str) -> bytes:
        # no options, no fusing of a * b + c (formulas that want it say so), an object file
        cpu = machine.levels[processor() or ""].cpu
        return bytes(llvm.translate_to_asm(text, machine.triple, cpu, "", [], False, True, *newest))

    return assembled, amd.link_hsaco  # LLVM's linker, which takes any machine's objects


def _keyed_digest(key: str, library: bytes) -> bytes:
    """What stands behind a kept library: a loader maps a file that was cut short as readily as a whole one, and ends the process when it runs."""
    import hashlib

    return hashlib.sha256(key.encode() + library).digest()


def _load_library(key: str, path: str | None) -> ctypes.CDLL | None:
    """A library that was kept whole for this key; None where there is none."""
    if path is None or (not any(name in os.environ for name in _FOLDER_VARIABLES) and is_foreign_file(path)):
        return None  # another user's, in a home that several have: a library runs whatever it holds
    try:
        held = Path(path).read_bytes()
        if held[-_DIGEST:] == _keyed_digest(key, held[:-_DIGEST]):
            return ctypes.CDLL(path)
    except OSError:  # removed in between, or in a folder that nothing may be run from
        return None
    return None


def build(text: str) -> Any:
    """The function `run` of a module in LLVM's intermediate language, without types of arguments."""
    return build_library(text).run


def build_library(text: str) -> ctypes.CDLL:
    """A module in LLVM's intermediate language, whose functions are the library's attributes."""
    key = _key("library", text)
    cache = _cache(key)
    found = _load_library(key, None if cache is None else cache.get_file("run.so"))
    if found is not None:
        return found
    import tempfile

    assembled, linked = _backend()
    with loading("machine code"), tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "run.o"), Path(folder, "run.so")
        with _compiling:
            source.write_bytes(assembled(text))
            linked(str(source), str(target))
        library = target.read_bytes()
        path = str(target)
        with contextlib.suppress(OSError):  # a folder that cannot be written: the library serves this process alone
            if cache is not None:
                path = cache.put(library + _keyed_digest(key, library), "run.so")
        return ctypes.CDLL(path)


def build_typed(text: str, answer: Any, *arguments: Any) -> Any:
    """`build` with ctypes' types of its answer and arguments; None where there is no machine code (see `refusal`)."""
    if refusal():
        return None
    made = build(text)
    made.restype, made.argtypes = answer, arguments
    return made
