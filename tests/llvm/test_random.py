"""Random words and numbers by machine code: bit for bit those of numpy, wherever a stream begins."""

from __future__ import annotations

import numpy as np
import pytest

from tritensor.kernels.parts.random_words import normal, philox, philox_llvm
from tritensor.llvm import compiler

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")


def _words(seed: int, offset: int, blocks: int) -> np.ndarray:
    words = np.empty((blocks, 4), np.uint32)
    philox._fill_blocks(words, seed, offset)
    return words.reshape(-1)


@pytest.mark.parametrize("offset", [0, 7, 2**32 - 5, 2**63, 2**64 - 9])
@pytest.mark.parametrize("seed", [0, 67280421310721, 2**64 - 1])
def test_bits(seed: int, offset: int) -> None:
    n = 4 * 1000 + 3  # 62 times 16 blocks and some that are left
    want = _words(seed, offset, 1008)
    for kind, numbers in (
        ("words", want),
        ("uniforms", (want >> 8).astype(np.float32) * np.float32(2.0**-24)),
        ("normals", _normals(want)),
    ):
        out = np.zeros(n, philox_llvm.TYPES[kind])
        done = philox_llvm.fill(kind, out, seed, offset)
        assert done == 62 * 64
        np.testing.assert_array_equal(out[:done].view(np.uint32), numbers[:done].view(np.uint32))
        assert not out[done:].any()


def _normals(words: np.ndarray) -> np.ndarray:
    z = np.empty(words.size, np.float32)
    z[::2], z[1::2] = normal.numpy_polar(words[::2], words[1::2])
    return z


def test_the_ends_of_normals() -> None:
    """Words whose logarithm or angle is at an end, through the lanes' formula alone."""
    from tritensor.llvm.loops import Loop

    ends = np.array([0, 1, 2, 127, 128, 255, 2**31 - 1, 2**31, 2**32 - 129, 2**32 - 128, 2**32 - 1, 2**29, 3 * 2**29, 2**30], np.uint32)
    w, v = (x.reshape(-1) for x in np.meshgrid(np.tile(ends, 4), np.tile(ends, 4)))
    found = (np.empty(w.size, np.float32), np.empty(w.size, np.float32))
    assert Loop(lambda a, b: philox_llvm.polar(a, b))((w.view(np.int32), v.view(np.int32)), found)
    for one, other in zip(found, normal.numpy_polar(w, v), strict=True):
        np.testing.assert_array_equal(one.view(np.int32), other.view(np.int32))


def test_other_types_are_left() -> None:
    assert philox_llvm.fill("normals", np.empty(1000), 0, 0) == 0
    assert philox_llvm.fill("words", np.empty(63, np.uint32), 0, 0) == 0
