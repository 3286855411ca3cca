"""The bug planter: which bugs it knows, that the same seed plants the same ones, that what is planted is Python, which tests are asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.mutate.__main__ import ROOT, chosen
from tests.mutate.equivalent import FUNCTIONS, SIZES, lines, reason
from tests.mutate.faults import faults, parses
from tests.mutate.listed import EQUIVALENT
from tests.mutate.reach import ops_reaching
from tests.mutate.selection import stages

SOURCE = b'''"""A file."""

LIMIT = 3


def samples(rng) -> list[Sample]:
    return rng.random(5) < 7


def clip(x, low: int = 0):
    """Docstrings 1 and 2 are no code."""
    if x < low and not x is None:
        raise ValueError(f"{x + 1} is below {low}")
    total = first(x, low) + 2.5
    total += 1
    note(total)
    return total
'''

PLANTED = {
    "comparison": "x <= low",
    "and/or": "x < low or",
    "not removed": "low and (x is None)",
    "constant": "low: int = 1",
    "arithmetic": "first(x, low) - 2.5",
    "arguments swapped": "first(low, x)",
    "branch dropped": "if False:",
    "return value dropped": "return None",
    "statement dropped": "pass\n    note(total)",
}


@pytest.mark.parametrize("kind", list(PLANTED))
def test_what_is_planted(kind: str) -> None:
    texts = [f.planted(SOURCE).decode() for f in faults("a.py", SOURCE) if f.kind == kind]
    assert any(PLANTED[kind] in text for text in texts), texts


def test_what_is_left_alone() -> None:
    """Messages, docstrings, annotations and what only tests draw."""
    for fault in faults("a.py", SOURCE):
        text = fault.planted(SOURCE).decode()
        assert "rng.random(5) < 7" in text
        assert "Docstrings 1 and 2" in text
        assert '{x + 1} is below {low}")' in text
        assert parses(fault, SOURCE)
        assert fault.diff(SOURCE).startswith("--- a.py\n+++ a.py\n@@")


def test_the_same_seed_plants_the_same_bugs() -> None:
    only = ["kernels/normalization/softmax.py", "autograd/modes.py"]
    assert chosen(30, 1, only) == chosen(30, 1, only)
    assert chosen(30, 1, only) != chosen(30, 2, only)
    assert {f.path for f in chosen(30, 1, only)} == set(only)


def walks(path: str, function: str) -> list[str]:
    return [w for stage in stages(ROOT, path, function) if stage.do == "ask" for w in stage.what]


def test_its_own_ops_are_asked_first_and_in_every_type() -> None:
    first = stages(ROOT, "kernels/normalization/softmax.py", "online")[0]
    assert "softmax/float32/emulated" in first.what
    assert walks("kernels/parts/cpu/summation.py", "few")[0] == "bce_with_logits/float64/cpu"
    assert "isinf/int64/emulated" in walks("kernels/elementwise/comparison.py", "_isinf")
    assert not any(w.startswith("matmul") for w in walks("kernels/elementwise/comparison.py", "_isinf"))


def test_a_shared_function_asks_the_ops_that_reach_it() -> None:
    assert {w.split("/")[0] for w in walks("kernels/parts/launch_rules.py", "gemm_tiles")} == {
        *(f"conv{axes}d{of}" for axes in (1, 2, 3) for of in ("", "_input", "_weight", "_relu")), "add_product", "attention", "flash_attention", "linear",
        "linear_activation", "linear_activation_by_result", "linear_cross_entropy", "matmul",
        "gru_sequence", "lstm_sequence", "rnn_sequence",
    }  # fmt: skip
    assert {"add_product", "conv1d", "linear_activation", "lstm_sequence"} < set(
        ops_reaching(ROOT, "kernels/parts/launch_rules.py", "gemm_tiles")
    ), "a few, from all over"
    assert set(ops_reaching(ROOT, "kernels/parts/random_words/philox.py", "philox")) == {
        "dropout",
        "flash_attention",
        "rand",
        "randint",
        "randn",
        "randperm",
    }
    tested = [
        t for stage in stages(ROOT, "kernels/normalization/row_gradients.py", "_partial_sums") if stage.do == "pytest" for t in stage.what
    ]
    assert "tests/kernels/test_tiles.py" in tested
    tested = [t for stage in stages(ROOT, "kernels/parts/axes.py", "blocks") if stage.do == "pytest" for t in stage.what]
    assert "tests/kernels/test_tiles.py" in tested
    for path in ("tritensor/tensor/functions/creation/random.py", "tritensor/tensor/core.py"):
        assert "tests/tensor" in {t for stage in stages(ROOT, path, "f") for t in stage.what}
    assert "tests/autograd" in {t for stage in stages(ROOT, "autograd/engine.py", "grad") for t in stage.what}


@pytest.mark.parametrize(
    ("old", "why"),
    [("np.add(part, onto)", "order"), ("max(1, n)", "order"), ("np.subtract(part, onto)", ""), ("launch(k, grid, num_warps=4)", "speed")],
)
def test_what_changes_no_answer_is_not_planted(old: str, why: str) -> None:
    source = f"def f(onto, part):\n    return {old}\n".encode()
    found = [reason(f, source) for f in faults("a.py", source) if f.kind in ("arguments swapped", "constant")]
    assert any(why and why in said for said in found) == bool(why), found


KINDS = {"adds nothing": ("comparison",)}  # of faults that a reason speaks of, where not of numbers


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def f(x):\n    return sum(s * 2 for s in x if s > 0)", "adds nothing"),
        ("def f(b, zero):\n    return b + zero", "type alone"),
        ("def f(b, one):\n    return b + one", ""),
        ("def _backward(g: CudaArray, *, axes: int = 1):\n    return g", "every attribute"),
        ("def _forward(x: CudaArray, *, axes: int = 1):\n    return x", ""),
        ("def _reference(x: CudaArray, *, axes: int = 1):\n    return x", ""),
    ],
)
def test_what_a_kernel_cannot_show_is_not_planted(source: str, why: str) -> None:
    found = [reason(f, source.encode()) for f in faults("a.py", source.encode()) if f.kind in KINDS.get(why, ("arithmetic", "constant"))]
    assert found
    assert all(why in said and bool(said) == bool(why) for said in found), found


ROWS = """def kernel(x, y, inside):
    m = tl.load(x, mask=inside, other=0.0)
    tl.store(y, m + tl.sum(m, axis={axis}), mask={mask})
"""


@pytest.mark.parametrize(("axis", "mask", "excused"), [(1, "inside", True), (1, "lanes", True), (0, "inside", False), (1, "every", False)])
def test_what_a_load_has_for_rows_outside(axis: int, mask: str, excused: bool) -> None:
    source = ROWS.format(axis=axis, mask=mask).encode()
    found = [reason(f, source) for f in faults("a.py", source) if source[f.start : f.end] == b"0.0"]
    assert found
    assert all(("not stored" in said) is excused for said in found)


def test_sizes_that_a_launch_rule_is_free_to_choose_are_not_planted() -> None:
    path = "kernels/parts/launch_rules.py"
    source = (ROOT / path).read_bytes()
    kept = [f for f in faults(path, source) if f.function == "gemm_tiles" and not reason(f, source)]
    lines = {source[: f.start].decode().rpartition("\n")[2] + source[f.start : f.end].decode() for f in kept if f.kind == "constant"}
    assert not any("PROGRAMS //" in line for line in lines)
    assert any("block_m //= 2" in line for line in lines)


def test_a_bad_index_is_asked_of_the_tests_of_device_errors() -> None:
    tested = [t for stage in stages(ROOT, "kernels/indexing/gathering.py", "_scatter_kernel") if stage.do == "pytest" for t in stage.what]
    assert "tests/cuda/test_device_errors.py" in tested
    assert "tests/kernels/indexing/test_indexing.py" in tested


def test_a_server_answers_what_finds_a_fault() -> None:
    asked = [
        {"do": "ask", "what": ["relu/float32/cpu", "relu/no_type/cpu"], "limit": 100, "tier": "quick"},
        {"do": "ask", "what": ["no_such_op/float32/cpu"], "limit": 100, "tier": "quick"},
        {"do": "pytest", "what": ["tests/kernels/no_such_file.py"], "limit": 100, "tier": "quick"},
        {"do": "ask", "what": ["relu/float32/emulated"], "limit": 0, "tier": "quick"},
    ]
    said = subprocess.run(
        [sys.executable, "-m", "tests.mutate.server", "numpy"],
        input="".join(json.dumps(a) + "\n" for a in asked),
        capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"},
    ).stdout  # fmt: skip
    killers = [json.loads(line)["killer"] for line in said.splitlines()]
    assert killers[0] == ""
    assert killers[1].startswith("import: ")
    assert killers[2] == "import"
    assert killers[3] == "time"


@pytest.mark.parametrize("path", list(EQUIVALENT))
def test_every_listed_fault_can_be_planted(path: str) -> None:
    """A line that was written anew leaves the list: what held of the old one is to be judged again."""
    source = (ROOT / path).read_bytes()
    assert set(EQUIVALENT[path]) <= {lines(f, source) for f in faults(path, source)}


def test_reasons_name_what_is_there() -> None:
    named = [*SIZES.items(), *((path, (function,)) for path, function in FUNCTIONS)]
    assert all(f"def {function}(" in (ROOT / path).read_text() for path, functions in named for function in functions)
