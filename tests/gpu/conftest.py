"""The GPU suite's set-up: what it launches is compiled first, by all cores, for the ops whose tests were chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Nothing of tritensor is imported up here: this file is read before tests/conftest.py has said whether the device is emulated.

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def compiled(request: pytest.FixtureRequest) -> str:
    """Compiles ahead, in a process of its own; returns what went wrong there, "" when nothing did."""
    from tests.gpu.scale import real
    from tritensor import cuda

    if not real() or request.config.pluginmanager.hasplugin("dealt"):  # tests that suite.py deals to processes compile as they go
        return ""

    major, minor = cuda.get_device_capability()
    ops = sorted(
        {i.callspec.params["op"].name for i in request.session.items if "op" in getattr(getattr(i, "callspec", None), "params", {})}
    )
    steps = any("test_graphs" in i.nodeid or "test_memory" in i.nodeid for i in request.session.items)
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\ncompiling the kernels of {len(ops)} ops with {os.cpu_count()} processes", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "tests.gpu.warm", "--arch", f"{major}{minor}", *(["--steps"] if steps else []), "--op", *ops],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        print(done.stdout[-2000:], flush=True)
    return done.stdout if done.returncode else ""
