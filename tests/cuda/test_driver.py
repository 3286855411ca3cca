"""The real device's road as far as it goes without a GPU, and what the cuda module says of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tritensor  # noqa: F401
from tritensor.array import empty
from tritensor.cuda import presence
from tritensor.device import device
from tritensor.errors import DeviceError

cuda = sys.modules["tritensor.cuda"]
ROOT = Path(__file__).resolve().parent.parent.parent


def child(*args: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process whose kernels are compiled, not interpreted."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *args], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_everything_up_to_the_driver_call() -> None:
    found, _ = presence._found()
    done = child("-m", "tests.cuda.driver_child", *([] if found else ["--no-gpu"]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all checks passed" in done.stdout


def test_without_a_driver_the_answer_is_quick_and_helpful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr(presence.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    presence._found.cache_clear()
    start = time.perf_counter()
    assert not cuda.is_available()
    assert time.perf_counter() - start < 1e-3
    assert "libcuda.so.1" in cuda.why()
    assert "TRITON_INTERPRET=1" in cuda.why()
    assert cuda.device_count() == 0
    for ask in (cuda.current_device, cuda.get_device_name, cuda.synchronize, cuda.memory_allocated):
        with pytest.raises(DeviceError, match="no NVIDIA driver"):
            ask()
    presence._found.cache_clear()


class _Library:
    """A libcuda that answers with the statuses it is given."""

    def __init__(self, init: int, count: int, devices: int) -> None:
        self.cuInit = lambda flags: init
        self.devices = devices
        self.status = count

    def cuDeviceGetCount(self, into: object) -> int:
        into._obj.value = self.devices  # type: ignore[attr-defined]
        return self.status


@pytest.mark.parametrize(
    ("library", "count", "said"),
    [
        (_Library(0, 0, 3), 3, ""),
        (_Library(100, 0, 0), 0, "sees no GPU; check nvidia-smi"),
        (_Library(803, 0, 0), 0, "does not start .cuInit gave error 803"),
        (_Library(0, 0, 0), 0, "sees no GPU .cuDeviceGetCount"),
    ],
)
def test_what_the_driver_library_says(monkeypatch: pytest.MonkeyPatch, library: _Library, count: int, said: str) -> None:
    import re

    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr(presence.ctypes, "CDLL", lambda name: library)
    presence._found.cache_clear()
    assert cuda.device_count() == count
    assert re.search(said, cuda.why())
    assert bool(cuda.why()) == (count == 0)
    presence._found.cache_clear()


def test_the_emulated_devices() -> None:
    assert cuda.is_available()
    assert cuda.why() == ""
    assert cuda.device_count() == 2
    assert cuda.current_device() == 0
    assert "interpreter" in cuda.get_device_name("cuda:1")
    assert cuda.get_device_capability() == (9, 0)
    before = cuda.memory_allocated()
    x = empty((10,), np.dtype(np.float32), device("cuda", 0))
    assert cuda.memory_allocated() == before + 40
    del x
    assert cuda.memory_allocated() == before
    cuda.synchronize()


@pytest.mark.parametrize(
    ("bad", "said"), [(2, "cuda:2: no such device; this machine has 2"), ("cpu", "cpu is not a GPU"), ("cuda:9", "cuda:9: no such device")]
)
def test_devices_that_are_not_there(bad: object, said: str) -> None:
    with pytest.raises(DeviceError, match=said):
        cuda.synchronize(bad)
    if bad == 2:
        with pytest.raises(DeviceError, match="cuda:2: no such device"):
            empty((3,), np.dtype(np.float32), device("cuda", 2))


def test_a_second_process_finds_nothing_of_cuda_python_imported() -> None:
    done = child(
        "-c", "import sys, tritensor; print(sys.modules['tritensor.cuda'].is_available(), any(m.startswith('cuda.') for m in sys.modules))"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "False"
