"""Ops by the file that registers them, read off kernels/op_index.py without importing the package, and the tests that walk the table of ops."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES: dict[str, str] = runpy.run_path(str(ROOT / "kernels/op_index.py"))["MODULES"]
KNOWN = frozenset(op for names in MODULES.values() for op in names.split())
WALKS = ("tests/ops", "tests/llvm/test_ops.py", "tests/func/test_table.py", "tests/onnx/test_ops.py")  # their items are named for ops


def ops_of(path: str) -> tuple[str, ...]:
    """The ops that a kernel file, or the folder of an op that lies over several, registers."""
    module = path.removeprefix("kernels/").removesuffix(".py").replace("/", ".")
    return tuple(MODULES.get(module, "").split() or MODULES.get(f"{module.rpartition('.')[0]}.op", "").split())
