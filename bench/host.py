"""What an op costs beside its arithmetic: tiny tensors on the CPU and on device cuda, ours beside torch's."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

import tritensor as tt
from bench.timing import line, paired, torch_or_none


def chain(x, y):
    """100 elementwise ops, a sum, and all their gradients."""
    z = x
    for _ in range(50):
        z = z * y
        z = z + y
    z.sum().backward()


def _on_device() -> str:
    """The table of bench/device_host.py: on the GPU where there is one, else on the stub driver."""
    command = [sys.executable, "-m", "bench.device_host"]
    if not tt.cuda.is_available():
        from tests.stub.build import environment

        where = environment(STUB_CHECK=0)
    else:
        where = dict(os.environ)
    return subprocess.run(command, env=where, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> None:
    torch = torch_or_none()
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.5, 1.5, (4, 3)).astype(np.float32) for _ in range(2))
    x, y = (tt.from_numpy(v).requires_grad_() for v in (a, b))
    p, q = (torch.from_numpy(v.copy()).requires_grad_() for v in (a, b)) if torch else (None, None)
    cases = {
        "numpy add (the floor)": (lambda: np.add(a, b), None),
        "x + y, gradient recorded": (lambda: x + y, lambda: p + q),
        "tt.add(x, y), gradient recorded": (lambda: tt.add(x, y), lambda: torch.add(p, q)),
        "x * 2.0, gradient recorded": (lambda: x * 2.0, lambda: p * 2.0),
        "x.tanh(), gradient recorded": (lambda: x.tanh(), lambda: p.tanh()),
        "x.sum(), gradient recorded": (lambda: x.sum(), lambda: p.sum()),
        "x.mm(y.t()), gradient recorded": (lambda: x.mm(y.t()), lambda: p.mm(q.t())),
        "x[:, 1], gradient recorded": (lambda: x[:, 1], lambda: p[:, 1]),
        "x.view(-1), gradient recorded": (lambda: x.view(-1), lambda: p.view(-1)),
        "chain of 100 ops, forward and backward": (lambda: chain(x, y), lambda: chain(p, q)),
    }
    print("host cost on tiny float32 tensors (4, 3), one thread, medians of alternating rounds")
    for label, (ours, peer) in cases.items():
        print(line(label, paired(ours, peer if torch else None)))
    print(_on_device(), end="")
    print("import in a fresh process, median of 7")
    for label, code in {
        "import numpy, triton": "import numpy, triton",
        "import tritensor": "import tritensor",
        "import torch": "import torch",
    }.items():
        if "torch" in code and torch is None:
            continue
        timed = f"import time; s = time.perf_counter(); {code}; print(time.perf_counter() - s)"
        runs = sorted(
            float(subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout) for _ in range(7)
        )
        print(f"{label:<52}{runs[3] * 1e3:>10.1f} ms")
