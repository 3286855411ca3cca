"""Builds the stub libnccl.so.2, once per state of its source."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.stub.build import _compiler, _headers

SOURCE = Path(__file__).resolve().parent / "libnccl.c"
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libnccl.so.2"]


@cache
def library() -> Path:
    """The file libnccl.so.2. Raises RuntimeError where there is no C compiler, no cuda.h, or the source does not compile."""
    headers, compiler = _headers(), _compiler()
    state = hashlib.sha256(" ".join([compiler, *FLAGS]).encode() + (headers / "cuda.h").read_bytes() + SOURCE.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"tritensor-stub-{os.getuid()}" / f"nccl-{state.hexdigest()[:16]}"
    found = folder / "libnccl.so.2"
    if found.exists():
        return found
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"building-{os.getpid()}"  # several test processes may build at once; the rename is what counts
    command = [compiler, *FLAGS, "-I", str(headers), "-o", str(unfinished), str(SOURCE), "-lpthread", "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the stub of NCCL does not compile:\n{' '.join(command)}\n{done.stderr}")
    unfinished.replace(found)
    return found
