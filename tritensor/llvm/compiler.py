"""LLVM's intermediate language to a function that ctypes calls: compiled and linked by the LLVM inside Triton, kept beside Triton's own cache.

Triton carries LLVM for its own host beside that for GPUs (its kernels' launchers are no use here: nothing of it knows tensors). What is used of it
is not public, so `refusal` first tries it in a process of its own; where it fails, on other processors than x86-64 and with TRITENSOR_NATIVE=0, numpy
computes alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tritensor.ground.process import locks
from tritensor.ground.process.late_imports import is_out_of_descriptors, loading, out_of_descriptors_error
from tritensor.ground.process.ownership import is_foreign_file

TRIPLE = "x86_64-unknown-linux-gnu"
# The levels of x86-64, the best first, by what /proc/cpuinfo calls the features that tell them apart (System V ABI for x86-64, section 3.1.1).
_LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
}
_PARTS = ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser")
_TRIAL_SECONDS = 120  # seconds that the trial may take
_FOLDER_VARIABLES = ("TRITON_CACHE_DIR", "TRITON_HOME")  # who names a folder trusts it
_DIGEST = hashlib.sha256().digest_size
_PROBE = "define i64 @run(i64 %n) {\n  %m = add i64 %n, 1\n  ret i64 %m\n}\n"


@functools.cache
def processor() -> str | None:
    """What LLVM calls this processor's kind; None where it has no vectors of eight float32 and no conversion of float16."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    try:
        with loading("machine code"):
            text = Path("/proc/cpuinfo").read_text()
    except (FileNotFoundError, PermissionError):
        return None
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    features = set(line.partition(":")[2].split())
    found = [level for level, asked in _LEVELS.items() if asked <= features]
    return found[0] if found and _LEVELS["x86-64-v3"] <= features else None


@functools.cache
def refusal() -> str:
    """Why nothing is compiled for this processor; "" where it is."""
    if os.environ.get("TRITENSOR_NATIVE", "1") == "0":
        return "TRITENSOR_NATIVE=0"
    if processor() is None:
        return f"a processor that is not x86-64 with AVX2: {platform.machine()}"
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

    llvm.init_targets()
    symbols = ctypes.CDLL(libtriton.__file__)
    for part in _PARTS:  # LLVM's own C interface; Triton to 3.8 does it in init_targets
        getattr(symbols, f"LLVMInitializeX86{part}", lambda: None)()
    newest = (False,) if (llvm.translate_to_asm.__doc__ or "").count(": bool") > 2 else ()  # a switch more since Triton 3.8

    def assembled(text: str) -> bytes:
        # no options, no fusing of a * b + c (formulas that want it say so), an object file
        return bytes(llvm.translate_to_asm(text, TRIPLE, processor(), "", [], False, True, *newest))

    return assembled, amd.link_hsaco  # LLVM's linker, which takes any machine's objects


def _keyed_digest(key: str, library: bytes) -> bytes:
    """What stands behind a kept library: a loader maps a file that was cut short as readily as a whole one, and ends the process when it runs."""
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
