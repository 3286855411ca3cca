"""`python -m tritensor.doctor` and `cuda.is_available()`: what they say with no driver, a bad one, the stub, and when the GPU's process dies."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.stub.build import _compiler, environment
from tests.stub.child import on_stub
from tritensor.cuda import availability
from tritensor.cuda.compiler.pack import write_pack
from tritensor.tools import command_line, doctor
from tritensor.tools.doctor_probe import Check

ROOT = Path(__file__).resolve().parents[2]


def without_driver(**more: object) -> dict[str, str]:
    """The environment of a process that finds no libcuda.so.1 of the stub's (and no GPU of the machine's, should it have one)."""
    env = environment(CUDA_VISIBLE_DEVICES="", **more)
    env["LD_LIBRARY_PATH"] = os.environ.get("LD_LIBRARY_PATH", "")
    return env


def doctors(env: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "tritensor.doctor", *argv]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=240)


def findings(env: dict[str, str]) -> tuple[bool, dict[str, Any]]:
    """(works, findings by name) of `--json`."""
    done = doctors(env, "--json")
    said = json.loads(done.stdout)
    assert done.returncode == (0 if said["works"] else 1), done.stderr
    return said["works"], {c["name"]: c for c in said["checks"]}


def test_without_a_gpu(tmp_path: Path) -> None:
    done = doctors(without_driver(TRITENSOR_CACHE=tmp_path))
    assert done.returncode == 1, done.stderr
    assert not done.stderr
    assert re.search(r"FAIL  libcuda\.so\.1 +(no NVIDIA driver|the NVIDIA driver)", done.stdout)
    assert "TRITON_INTERPRET=1 to emulate the device" in done.stdout
    assert re.search(r"ok    triton +an add for sm_90 compiled", done.stdout), "the compiler works without a GPU, and precompile with it"
    assert done.stdout.splitlines()[-1].startswith("The GPU does not work: driver libcuda.so.1.")
    columns = {line.index(line.split(maxsplit=2)[-1]) for line in done.stdout.splitlines() if line.startswith("  ok ")}
    assert len(columns) == 1, "the values stand in one column"


def test_what_computes_on_the_cpu(tmp_path: Path) -> None:
    _, found = findings(without_driver(TRITENSOR_CACHE=tmp_path, TRITENSOR_NATIVE=0))
    assert (found["machine-code"]["status"], found["machine-code"]["value"]) == ("note", "none: TRITENSOR_NATIVE=0; numpy computes")


def test_emulated(tmp_path: Path) -> None:
    done = doctors(without_driver(TRITENSOR_CACHE=tmp_path, TRITON_INTERPRET=1))
    assert done.returncode == 1, "no GPU is used"
    assert re.search(r"FAIL  emulation +TRITON_INTERPRET is set: device cuda is emulated", done.stdout)
    assert "-> unset TRITON_INTERPRET" in done.stdout
    assert "equal numpy's" in done.stdout, done.stdout
    assert done.stdout.splitlines()[-1].startswith("No GPU is used: device cuda is emulated")


def test_on_the_stub(tmp_path: Path) -> None:
    """The stub runs no kernels: everything is well but the kernel's result, which the doctor sees."""
    works, found = findings(environment(TRITENSOR_CACHE=tmp_path, STUB_DEVICES=2, STUB_CAPABILITY=90))
    assert not works
    assert found["libcuda.so.1"]["status"] == "ok"
    assert "sees 2 GPUs" in found["libcuda.so.1"]["value"]
    for name in ("cuda:0", "cuda:1"):
        assert found[name]["status"] == "ok", found[name]
        assert "sm_90" in found[name]["value"]
        assert "GiB free" in found[name]["value"]
    assert found["cuda:1 kernel"]["status"] == "fail"
    assert re.search(r"x \* y \+ x is wrong in \d+ of \d+ places: .* in place of", found["cuda:1 kernel"]["value"])
    assert "us" in found["cuda:0 launch"]["value"]
    for name in ("python", "triton", "numpy", "ml_dtypes", "cuda-bindings"):
        assert found[name]["status"] == "ok"


@pytest.mark.parametrize(
    ("stub", "says", "fix"),
    [
        ({"STUB_DRIVER_VERSION": 11040}, "made for CUDA 11.4, 12.0 or later is needed", "update the driver"),
        ({"STUB_INIT_STATUS": 803}, "SYSTEM_DRIVER_MISMATCH", "reboot"),
        ({"STUB_INIT_STATUS": 999}, "cuInit gave error 999", "nvidia-smi"),
        ({"STUB_INIT_STATUS": 100}, "NO_DEVICE", "CUDA_VISIBLE_DEVICES"),
        ({"STUB_INIT_STATUS": 77}, "cuInit gave error 77", "nvidia-smi"),
    ],
)
def test_a_driver_that_does_not_start(stub: dict[str, Any], says: str, fix: str) -> None:
    code = "import tritensor as tt; print(tt.cuda.is_available(), tt.cuda.device_count(), tt.cuda.why())"
    done = subprocess.run([sys.executable, "-c", code], env=environment(**stub), capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("False 0 ")
    assert says in done.stdout
    assert fix in done.stdout


def test_an_older_driver_is_a_warning(tmp_path: Path) -> None:
    """It may do: cuda-python and Triton's assembler may both be of a later CUDA than the driver."""
    _, found = findings(environment(TRITENSOR_CACHE=tmp_path, STUB_DRIVER_VERSION=12020))
    import importlib.metadata

    if importlib.metadata.version("cuda-bindings").startswith("13"):
        assert found["bindings"]["status"] == "warn"
        assert "pip install 'cuda-python<13'" in found["bindings"]["fix"]
    else:
        assert "bindings" not in found
    assert found["libcuda.so.1"]["value"].startswith("made for CUDA 12.2")


@pytest.mark.parametrize("kind", ["no library", "no functions"])
def test_a_broken_library(tmp_path: Path, kind: str) -> None:
    """libcuda.so.1 is there, but is no library, or one without the driver's functions."""
    library = tmp_path / "libcuda.so.1"
    if kind == "no library":
        library.write_text("this is no library")
    else:
        subprocess.run([_compiler(), "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
    code = "import tritensor as tt; print(tt.cuda.is_available(), tt.cuda.why())"
    env = environment(LD_LIBRARY_PATH=tmp_path)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("False ")
    assert ("does not load" if kind == "no library" else "is there but broken") in done.stdout
    assert "reinstall" in done.stdout


def test_asking_is_quick_where_there_is_no_gpu() -> None:
    """Under a millisecond, in a fresh process; the best of three, since neighbours take the core at times."""
    code = "import tritensor as tt, time; t = time.perf_counter(); tt.cuda.is_available(); print(time.perf_counter() - t)"

    def once() -> float:
        done = subprocess.run([sys.executable, "-c", code], env=without_driver(), capture_output=True, text=True, check=True, timeout=60)
        return float(done.stdout)

    assert min(once() for _ in range(3)) < 1e-3


def test_asking_imports_no_bindings() -> None:
    code = "import sys, tritensor as tt; tt.cuda.is_available(); assert not [m for m in sys.modules if m.startswith('cuda')]"
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True, timeout=60)


@on_stub()
def test_a_fork_refuses_the_driver_of_its_parent() -> None:
    assert availability.gpus() == 1
    pid = os.fork()
    if not pid:
        fits = availability.gpus() == 0 and "forked" in availability.reason() and "spawn" in availability.reason()
        os._exit(0 if fits else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert availability.gpus() == 1


@on_stub()
def test_a_fork_before_the_first_look_is_free() -> None:
    assert availability._found is None
    pid = os.fork()
    if not pid:
        os._exit(0 if availability.gpus() == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


# The process on the device
def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    """Let something else be the Python that the doctor starts."""
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\n" + script)
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))


def test_a_crash_on_the_device_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, """echo '["device", "cuda:0", "ok", "a GPU", ""]'\necho 'Xid 79' >&2\nkill -11 $$\n""")
    seen = doctor.on_device()
    assert seen[0] == Check("device", "cuda:0", "ok", "a GPU")
    assert seen[1].status == "fail"
    assert "exit code -11: Xid 79" in seen[1].value
    assert seen[1].fix


def test_a_hang_on_the_device_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, "exec sleep 60\n")
    monkeypatch.setattr(doctor, "PATIENCE", 0.2)
    start = time.perf_counter()
    (seen,) = doctor.on_device()
    assert time.perf_counter() - start < 20
    assert (seen.status, "no answer" in seen.value, bool(seen.fix)) == ("fail", True, True)


# Caches and settings
def test_caches_are_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITENSOR_CACHE", str(tmp_path / "ours"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("TRITENSOR_PACK", str(tmp_path / "nowhere.ttpack"))
    (tmp_path / "file").write_text("")
    write_pack(tmp_path / "ours" / "packs" / "old.ttpack", {"triton": "2.0", "archs": [80]}, [])
    found = {c.name: c for c in doctor.caches()}
    assert found["tritensor"].status == "ok"
    assert "0 kernels" in found["tritensor"].value
    assert "GB free" in found["tritensor"].value
    assert (found["triton"].status, "TRITON_CACHE_DIR" in found["triton"].fix) == ("warn", True)
    assert (found["pack nowhere"].status, "No such file" in found["pack nowhere"].value) == ("warn", True)
    assert (found["pack old"].status, "not used by Triton" in found["pack old"].value) == ("note", True)
    monkeypatch.setattr(doctor, "LEAST_SPACE", 1 << 60)
    assert {c.name: c for c in doctor.caches()}["tritensor"].status == "warn"
    monkeypatch.setenv("TRITENSOR_CACHE", "")
    assert {c.name: c for c in doctor.caches()}["tritensor"].status == "warn"


def test_settings_that_slow_things_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    found = {c.name: c for c in doctor.settings()}
    assert found["CUDA_LAUNCH_BLOCKING"].status == "warn"
    assert "TRITON_ALWAYS_COMPILE" not in found
    assert found["CUDA_VISIBLE_DEVICES"] == Check("settings", "CUDA_VISIBLE_DEVICES", "note", "1")


def test_packages_of_a_wrong_version_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    def version(name: str) -> str:
        if name == "numpy":
            raise importlib.metadata.PackageNotFoundError(name)
        return {"triton": "3.5.1", "ml_dtypes": "0.5.4", "cuda-bindings": "12.9.4"}[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = {c.name: c for c in doctor.packages()}
    assert (found["numpy"].status, found["numpy"].value) == ("fail", "not installed")
    assert found["triton"].fix.startswith("pip install 'triton>=3.6,<3.10'")
    assert [found[n].status for n in ("triton", "ml_dtypes", "cuda-bindings")] == ["fail", "ok", "ok"]


def test_the_verdict() -> None:
    good = Check("driver", "d", "ok", "fine")
    assert doctor.works([good, good._replace(status="warn"), good._replace(status="note")])
    assert not doctor.works([good, good._replace(status="fail")])
    said = doctor.text([good, good._replace(name="other", status="warn", fix="do this")])
    assert "      " in said
    assert "-> do this" in said


def test_the_command_is_the_module(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command_line.main(["doctor", "--help"])
    assert end.value.code == 0
    assert "--json" in capsys.readouterr().out
