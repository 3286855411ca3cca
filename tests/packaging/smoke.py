"""Run by a Python that has tritensor installed and nothing else of the checkout: one training step, and what lies where."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import tritensor as tt
from tritensor.tools import command_line

WINGS = ("kernels", "autograd", "nn", "optim")

home = Path(tt.__file__).resolve().parent
for name in (*WINGS, "tests", "bench", "examples"):
    assert importlib.util.find_spec(name) is None, f"{name} was installed at top level"
for name in WINGS:
    assert importlib.util.find_spec(f"tritensor.{name}") is not None, f"tritensor.{name} is missing"
assert (home / "py.typed").exists(), "py.typed is missing"
assert "torch" not in sys.modules, "something imported torch"
if not (home.parent / "bench").is_dir():  # there only where a checkout is installed to be edited: there the command times
    assert command_line.main(["bench"]) == 2, "benchmarks are no part of an installed package"

tt.manual_seed(0)
model = tt.nn.Sequential(tt.nn.Conv2d(1, 2, 3), tt.nn.ReLU(), tt.nn.Flatten(), tt.nn.Linear(2 * 6 * 6, 3))
optimizer = tt.optim.AdamW(model.parameters(), lr=0.01)
x, y = tt.randn(5, 1, 8, 8), tt.tensor([0, 1, 2, 1, 0])


def step() -> float:
    optimizer.zero_grad()
    loss = tt.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


before, after = step(), step()
assert after < before, f"the loss went from {before} to {after}"
print(f"tritensor {tt.__version__} in {home}: one training step took the loss from {before:.4f} to {after:.4f}")
