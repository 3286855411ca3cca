"""Loops in machine code: ends of arrays, types on the way in and out, memory they must not touch, and what they leave to numpy."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton.language as tl

import tritensor as tt
from tritensor.kernels.parts.cpu.simd_maths import on_vectors
from tritensor.llvm import compiler, simd_functions
from tritensor.llvm.loops import MANY, Loop
from tritensor.llvm.simd import NotVectorizableError, select

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")
_add = Loop(lambda a, b: a + b)
_same = Loop(lambda x: x)


@pytest.mark.parametrize("extra", [0, 1, 2, 31, 32, 33, 63, 64, 65])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_every_element_and_none_beyond(extra: int, dtype: type) -> None:
    n = MANY + extra
    room = np.full(n + 64, -7, dtype)
    a, b = np.arange(n).astype(dtype) % 100, np.ones(n, dtype)
    assert _add((a, b), room[32 : 32 + n])
    np.testing.assert_array_equal(room[32 : 32 + n], a + b)
    assert (room[:32] == -7).all()
    assert (room[32 + n :] == -7).all()


def test_in_place_and_orders() -> None:
    x = np.arange(6000, dtype=np.float32)
    assert _add((x, x), x)
    np.testing.assert_array_equal(x, 2 * np.arange(6000, dtype=np.float32))
    m = np.asfortranarray(np.random.default_rng(0).standard_normal((60, 80)).astype(np.float32))
    out = np.empty_like(m)
    assert out.flags.f_contiguous
    assert _add((m, 1.5), out)
    np.testing.assert_array_equal(out, m + np.float32(1.5))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_conversions_are_numpys_bit_for_bit(kind: type) -> None:
    every = np.arange(65536, dtype=np.uint16).view(kind)
    wide = np.empty(65536, np.float32)
    assert _same((every,), wide)
    with np.errstate(all="ignore"):
        want = every.astype(np.float32)
    np.testing.assert_array_equal(wide, want)
    np.testing.assert_array_equal(np.signbit(wide), np.signbit(want))
    finite = np.sort(want[np.isfinite(want)])
    middle = ((finite[:-1].astype(np.float64) + finite[1:]) / 2).astype(np.float32)  # ties
    near = np.concatenate([finite, middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))])
    anything = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    x = np.concatenate([near, anything, np.float32([np.inf, -np.inf, np.nan, -0.0, 65519.99, 65520, 3.4e38])])
    found = np.empty(x.shape, kind)
    assert _same((x,), found)
    with np.errstate(all="ignore"):
        narrow = x.astype(kind)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(found.view(np.uint16)[number], narrow.view(np.uint16)[number])
    assert np.isnan(found[~number].astype(np.float32)).all()


def test_truths_and_numbers() -> None:
    x = np.random.default_rng(0).standard_normal(5001).astype(np.float16)
    out = np.empty(5001, np.bool_)
    assert Loop(lambda a, b: a < b)((x, 0.25), out)
    np.testing.assert_array_equal(out, x < np.float16(0.25))


@pytest.mark.parametrize(
    ("inputs", "out"),
    [
        ((np.ones(8000, np.float32)[::2], 1.0), np.empty(4000, np.float32)),  # not in one piece
        ((np.ones(4000, np.complex64), 1.0), np.empty(4000, np.complex64)),
        ((np.ones((80, 50), np.float32), np.ones(50, np.float32)), np.empty((80, 50), np.float32)),  # broadcast
        ((np.ones(4000), 1.0), np.empty(4000, np.float16)),  # two roundings
        ((np.ones((80, 50), np.float32), 1.0), np.empty((80, 50), np.float32, order="F")),
        ((np.ones(4000, np.float32), None), np.empty(4000, np.float32)),
    ],
)
def test_left_to_numpy(inputs: Any, out: np.ndarray) -> None:
    assert not _add(inputs, out)


def test_overlapping_memory_is_left_to_numpy() -> None:
    room = np.arange(5000, dtype=np.float32)
    assert not _add((room[:-1], 1.0), room[1:])


def test_a_branch_on_a_vector_is_no_formula() -> None:
    def branches(x: Any) -> Any:
        return x if x > 0 else -x

    x = np.ones(4000, np.float32)
    for formula in (
        branches,
        lambda x: tl.where(x > 0, x, 0.0),
        lambda x: x.dtype,
        lambda x: math.sin(x),
        lambda x: x.to("i8") & x.to("f16"),
    ):
        assert not Loop(formula)((x,), np.empty_like(x))
    with pytest.raises(NotVectorizableError, match="two numbers"):
        Loop(lambda x: select(x > 0, 1.0, 2.0)).formula(_vector())
    with pytest.raises(NotVectorizableError, match="no such operation"):
        _vector() & _vector()


def _vector() -> Any:
    from tritensor.llvm.simd import Code, Vector

    return Vector(Code(16, "v"), "%x", "f32")


def test_switched_off_and_kept() -> None:
    program = (
        "import numpy as np; from tritensor.llvm import compiler, loops\n"
        "x = np.ones(5000, np.float32)\n"
        "print(compiler.refusal(), loops.Loop(lambda a: a + 1.0)((x,), np.empty_like(x)))"
    )

    def printed(switch: str) -> str:
        env = {**os.environ, "TRITENSOR_NATIVE": switch}
        return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout.strip()

    assert printed("0") == "TRITENSOR_NATIVE=0 False"
    assert printed("1") == "True"


_HARMED = """
import sys, _ctypes
from pathlib import Path
from tritensor.llvm import compiler
text = "define i64 @run(i64 %n) {\\n  %m = mul i64 %n, 3\\n  ret i64 %m\\n}\\n"
assert compiler.build(text)(5) == 15
(library,) = Path(sys.argv[1]).rglob("run.so")
whole = library.read_bytes()
for harmed in (whole[:4096], whole[:1000], b"", whole[:64] + bytes(len(whole) - 64), Path(_ctypes.__file__).read_bytes()):
    library.unlink()
    library.write_bytes(harmed)
    print(compiler.build(text)(5), library.read_bytes() == whole)
"""


def test_a_library_that_is_not_whole_is_made_anew(tmp_path: Any) -> None:
    """In a process of its own: half a library is mapped without a word, and ends who calls it."""
    env = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", _HARMED, str(tmp_path)], env=env, capture_output=True, text=True)
    assert done.stdout.split("\n")[:-1] == ["15 True"] * 5, done


def test_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", "/dev/null/kept")
    assert compiler.build("define i64 @run(i64 %n) {\n  %m = mul i64 %n, 5\n  ret i64 %m\n}\n")(5) == 25
    assert compiler.refusal.__wrapped__() == ""


def test_many_threads_compile_at_once(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    texts = [f"define i64 @run(i64 %n) {{\n  %m = mul i64 %n, {k}\n  ret i64 %m\n}}\n" for k in range(100, 108)] * 2
    with ThreadPoolExecutor(8) as pool:
        assert [f(3) for f in pool.map(compiler.build, texts)] == [3 * k for k in range(100, 108)] * 2


def test_several_results_in_place() -> None:
    rng = np.random.default_rng(0)
    p, m = rng.standard_normal(5003).astype(np.float32), np.ones(5003, np.float32)
    kept = p.copy()
    assert Loop(lambda a, b, rate: (a - b * rate, a * b + b))((p, m, 0.5), (p, m))
    np.testing.assert_array_equal(p, kept - np.float32(0.5))
    np.testing.assert_array_equal(m, kept + np.float32(1))


@pytest.mark.parametrize("extra", [0, 1, 63])
def test_only_elements_decide_whether_numpy_has_to(extra: int) -> None:
    """Behind the last element stand zeros, and 0 / 0 is too hard for a remainder: that is nobody's."""
    a, b = (np.random.default_rng(k).uniform(1, 9, MANY + extra).astype(np.float32) for k in (0, 1))
    remainder, out = Loop(on_vectors.fmod), np.empty_like(a)
    assert remainder((a, b), out)
    np.testing.assert_array_equal(out, np.fmod(a, b))
    b[-1] = 0
    assert not remainder((a, b), out)


def test_what_may_give_up_never_writes_over_its_input() -> None:
    x = tt.arange(5000, dtype=tt.float64)
    x[4000] = float("inf")
    want = np.append(np.sin(np.arange(5000.0)[:4000]), np.nan)
    np.testing.assert_allclose(x.sin_().numpy()[:4001], want, rtol=1e-14)
    y = np.ones(5000)
    assert not Loop(simd_functions.sin)((y,), y)
    assert (y == 1).all()


@pytest.mark.parametrize("level", compiler.lesser_levels())
def test_lesser_processors(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code for a processor of the same kind that knows less gives the same answers."""
    x = np.random.default_rng(0).standard_normal(5003)
    for dtype in (np.float16, np.float32, np.float64):
        given = x.astype(dtype)
        found, lesser = np.empty_like(given), np.empty_like(given)
        assert Loop(simd_functions.sin)((given,), found)
        with monkeypatch.context() as patch:
            patch.setattr(compiler, "processor", lambda: level)
            assert Loop(simd_functions.sin)((given,), lesser)
        np.testing.assert_array_equal(found, lesser)
