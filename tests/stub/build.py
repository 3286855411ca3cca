"""Builds the stub libcuda.so.1 with the machine's C compiler, once per state of its sources."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1"]


def _compiler() -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return name
    raise RuntimeError(
        "the stub driver needs a C compiler and found none (looked for $CC, cc, gcc, clang); install gcc: apt-get install gcc"
    )


def _headers() -> Path:
    """The folder of cuda.h, which Triton brings."""
    triton = importlib.util.find_spec("triton")
    assert triton is not None
    assert triton.origin is not None
    found = Path(triton.origin).parent / "backends" / "nvidia" / "include"
    if not (found / "cuda.h").exists():
        raise RuntimeError(f"the stub driver needs cuda.h, and Triton has none in {found}; is this a Triton without its NVIDIA backend?")
    return found


@cache
def driver_folder() -> Path:
    """The folder that holds libcuda.so.1, for LD_LIBRARY_PATH; builds it if this state of the sources has not been built.

    Raises RuntimeError where there is no C compiler, no cuda.h, or the sources do not compile.
    """
    headers, compiler = _headers(), _compiler()
    sources = sorted(HERE.glob("*.[ch]"))
    state = hashlib.sha256(" ".join([compiler, *FLAGS]).encode() + (headers / "cuda.h").read_bytes())
    for source in sources:
        state.update(source.name.encode() + source.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"tritensor-stub-{os.getuid()}" / state.hexdigest()[:16]
    if (folder / "libcuda.so.1").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"building-{os.getpid()}"  # several test processes may build at once; the rename is what counts
    command = [compiler, *FLAGS, "-I", str(headers), "-o", str(unfinished), *(str(s) for s in sources if s.suffix == ".c"), "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the stub driver does not compile:\n{' '.join(command)}\n{done.stderr}")
    unfinished.replace(folder / "libcuda.so.1")
    return folder


def environment(**stub: object) -> dict[str, str]:
    """The environment of a process that is to run on the stub; `stub`: STUB_DEVICES=2, ... (see libcuda.c) or any other variable."""
    root = str(HERE.parent.parent)
    kept = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET" and not k.startswith("STUB_")}
    paths = {
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(driver_folder()), kept.get("LD_LIBRARY_PATH", "")])),
        "PYTHONPATH": os.pathsep.join(filter(None, [root, kept.get("PYTHONPATH", "")])),
    }
    return kept | paths | {"OPENBLAS_NUM_THREADS": "1"} | {k: str(v) for k, v in stub.items()}
