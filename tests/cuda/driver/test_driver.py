"""The cuda module's answers about the machine: no driver, one that does not start, GPUs that are not there, the emulated ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tritensor  # noqa: F401
from tests.stub import build
from tritensor.cuda import availability
from tritensor.cuda.runtime import active
from tritensor.ground.device import device
from tritensor.ground.errors import DeviceError
from tritensor.ops.array import empty

cuda = sys.modules["tritensor.cuda"]
ROOT = Path(__file__).resolve().parents[2].parent


def child(*args: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a process whose kernels are compiled, not interpreted."""
    plain = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *args], cwd=ROOT, env=environment or plain, capture_output=True, text=True, check=False)


def test_without_a_driver_the_answer_is_quick_and_helpful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET")
    missing = OSError("libcuda.so.1: cannot open shared object file: No such file or directory")
    monkeypatch.setattr(availability.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(missing))
    monkeypatch.setattr(availability, "_found", None)
    monkeypatch.setattr(active, "_runtime", None)
    start = time.perf_counter()
    assert not cuda.is_available()
    assert time.perf_counter() - start < 1e-3
    assert "libcuda.so.1" in cuda.why()
    assert "TRITON_INTERPRET=1" in cuda.why()
    assert cuda.device_count() == 0
    for ask in (cuda.current_device, cuda.get_device_name, cuda.synchronize, cuda.memory_allocated):
        with pytest.raises(DeviceError, match="no NVIDIA driver"):
            ask()


@pytest.mark.parametrize(
    ("stub", "count", "said"),
    [
        ({"STUB_DEVICES": 3}, 3, ""),
        ({"STUB_DEVICES": 0}, 0, "CUDA_ERROR_NO_DEVICE.*check nvidia-smi and CUDA_VISIBLE_DEVICES"),
        ({"STUB_INIT_STATUS": 803}, 0, "cuInit gave error 803.*two versions; reboot"),
        ({"STUB_INIT_STATUS": 999}, 0, "cuInit gave error 999.*dmesg"),
        ({"STUB_DRIVER_VERSION": 11040}, 0, "too old: it is made for CUDA 11.4, 12.0 or later is needed"),
    ],
)
def test_what_the_driver_says(stub: dict[str, int], count: int, said: str) -> None:
    """In a process of its own each, on the stub driver."""
    code = """
import tritensor as tt
print(tt.cuda.device_count(), tt.cuda.is_available())
print(tt.cuda.why())
try:
    tt.ones(2, device="cuda")
except RuntimeError as error:
    print(type(error).__name__, error)
"""
    done = child("-c", code, environment=build.environment(**stub))
    assert done.returncode == 0, done.stderr
    counted, why, *raised = done.stdout.split("\n", 2)
    assert counted == f"{count} {count > 0}"
    assert bool(why) == (count == 0)
    assert re.search(said, why)
    assert (count > 0) == (raised == [""])
    if not count:
        assert raised[0].startswith("DeviceError"), raised
        assert re.search(said, raised[0])


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
