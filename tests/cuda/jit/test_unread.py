"""Files of kernels before Triton is imported: a program on the CPU imports none of it, and importing it makes kernels of all that was kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_facts import ROOT

STEP = """
import sys
import tritensor as tt
model = tt.nn.Sequential(tt.nn.Embedding(5, 8), tt.nn.Linear(8, 16), tt.nn.GELU(), tt.nn.LayerNorm(16), tt.nn.Linear(16, 4))
optimizer = tt.optim.AdamW(model.parameters(), 0.01)
for _ in range(2):
    loss = tt.nn.functional.cross_entropy(model(tt.arange(5)), tt.tensor([0, 1, 2, 3, 0]))
    loss.backward()
    optimizer.step()
assert "triton" not in sys.modules, "a step on the CPU has imported Triton"
"""
ALL = """
import sys
from tritensor.ops.table import registry
registry.everything()
assert "triton" not in sys.modules, "a file of kernels imports Triton where it is loaded"
"""
READ = """
import triton, triton.language as tl
from triton.runtime.jit import JITFunction
from tritensor.cuda.jit import unread
from tritensor.kernels.parts import maths
found = [v for n, m in list(sys.modules.items()) if n.startswith("tritensor.kernels") for v in vars(m).values()]
assert not [v for v in found if isinstance(v, (unread.Name, unread.Unread, unread.Constexpr)) or v is unread.Constexpr]
kernels = [v for v in found if isinstance(v, JITFunction)]
assert len(kernels) > 100 and kernels[0].arg_names and kernels[0].src.startswith("def ")
assert any(isinstance(v, tl.constexpr) for v in found)
from triton.language.extra import libdevice
assert maths.libdevice is libdevice and maths.tl is tl and maths.triton is triton
from tritensor.kernels.elementwise import activations  # and a file that is loaded now is Triton's from the start
"""


def ran(code: str, kept: Path) -> str:
    """Run code in a process of its own; machine code for the CPU is kept in a folder. Returns what it says on stderr."""
    environment = {"PYTHONPATH": str(ROOT), "HOME": str(kept), "TRITON_CACHE_DIR": str(kept)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120).stderr


@pytest.mark.slow
def test_all_files_of_kernels_are_loaded_without_triton_and_read_with_it(tmp_path: Path) -> None:
    assert ran(ALL + READ, tmp_path) == ""


def test_a_step_on_the_cpu_imports_no_triton_and_a_kernel_that_is_looked_at_does(tmp_path: Path) -> None:
    ran(STEP, tmp_path)  # the first compiles machine code by the LLVM inside Triton, and keeps it
    said = ran(
        STEP + "from tritensor.kernels.elementwise import activations\n"
        "from tritensor.cuda.jit import unread\n"
        "kernel = next(v for v in vars(activations).values() if type(v) is unread.Unread)\n"
        "assert kernel.__name__ and kernel.fn and 'triton' not in sys.modules\n"
        "assert kernel.arg_names and 'triton' in sys.modules and unread.is_read() and type(kernel) is not unread.Unread\n",
        tmp_path,
    )
    assert said == ""


def test_a_copy_of_a_files_names_is_read_with_it(tmp_path: Path) -> None:
    said = ran(
        "import sys, copy, tritensor\nfrom tritensor.cuda.jit import unread\nnames = unread.follow({'tl': unread.Name('triton.language')})\n"
        "copy.copy(names['tl'])\nunread.import_triton()\nassert names['tl'] is sys.modules['triton.language']\n",
        tmp_path,
    )
    assert said == ""


def test_coefficients_that_were_read_are_still_coefficients(tmp_path: Path) -> None:
    """numpy asks their length, before Triton is imported and after."""
    code = "import tritensor as tt; from tritensor.cuda.jit import unread; x = tt.ones(3) * 1.2; a = tt.lgamma(x), tt.special.erfinv(x / 2)"
    read = "unread.import_triton(); b = tt.lgamma(x), tt.special.erfinv(x / 2); assert a[0].equal(b[0]) and a[1].equal(b[1])"
    assert ran(f"{code}; {read}", tmp_path) == ""


def test_a_table_of_functions_finds_them_when_they_are_read(tmp_path: Path) -> None:
    ran("import tritensor as tt; tt.ones(2).relu()", tmp_path)  # the first compiles its machine code, for which Triton is imported
    said = ran(
        "import tritensor as tt\nfrom tritensor.cuda.jit import unread\ntt.ones(2).relu()\nfrom tritensor.kernels.parts import maths\n"
        "kept = {maths.gated: 1}\nassert type(maths.gated) is unread.Unread\nunread.import_triton()\n"
        "assert kept[maths.gated] == 1 and type(maths.gated) is not unread.Unread\n",
        tmp_path,
    )
    assert said == ""
