"""torch.__config__: the libraries that compute, and with how many threads."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from tritensor.torch_compat.settings import get_num_interop_threads, get_num_threads

_PACKAGES = ("triton", "cuda-python", "ml_dtypes")


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _blas() -> str:
    found = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{found['name']} {found.get('version', '')}".strip()


def show() -> str:
    """What this library runs on, a line each. Nothing of it is compiled beforehand; the last line says so in PyTorch's form, which programs search."""
    lines = [
        f"tritensor {_installed('tritensor')}, in Python {platform.python_version()}",
        f"numpy {np.__version__}, its BLAS: {_blas()}",
        *(f"{package} {_installed(package)}" for package in _PACKAGES),
        "Build settings: USE_MKL=OFF, USE_MKLDNN=OFF, USE_OPENMP=OFF, USE_ROCM=OFF, USE_XPU=OFF",
    ]
    return "tritensor runs on:\n" + "".join(f"  - {line}\n" for line in lines)


def parallel_info() -> str:
    """The numbers of threads on the CPU: of ops, of ops beside one another, of the machine; what the environment says of BLAS."""
    told = "".join(
        f"\t{name} : {os.environ.get(name, '[not set]')}\n" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    )
    return (
        f"threads of an op : {get_num_threads()}\nops beside one another : {get_num_interop_threads()}\n"
        f"threads of the machine : {os.cpu_count()}\nEnvironment variables:\n{told}"
    )
