"""Draws on the CPU: the formulas of draws.py on numpy arrays and on SIMD vectors, with the same bits."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.kernels.parts.random_words import philox_llvm
from tritensor.kernels.parts.random_words.normal import numpy_polar
from tritensor.kernels.parts.random_words.philox import numpy_words
from tritensor.llvm.simd import Vector, select
from tritensor.random import blocks_used

FLOAT16, BFLOAT16 = -(1 << 13), -(1 << 16)  # the bits of a float32 number that these types keep of it


# --- numpy
def _on_numpy(make: Callable[[np.ndarray], np.ndarray], bits: int) -> Callable[..., np.ndarray]:
    def drawn(place: np.ndarray, seed: Any, offset: Any) -> np.ndarray:
        """The numbers at some places, picked from a stream's first ones."""
        count = -(-(int(place.max(initial=0)) + 1) // 4) * 4
        key, first = [int(np.asarray(x).reshape(-1)[0]) & 0xFFFFFFFFFFFFFFFF for x in (seed, offset)]
        words = numpy_words(key, first, 4 * blocks_used(count, bits))
        return make(words.view(np.uint64) if bits == 64 else words)[np.asarray(place)]

    return drawn


def _numpy_words(w: np.ndarray) -> np.ndarray:
    return (w ^ np.uint32(1 << 31)).view(np.int32)


def _numpy_uniforms(w: np.ndarray) -> np.ndarray:
    return (w >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def _numpy_cut(w: np.ndarray, kept: int) -> np.ndarray:
    return (_numpy_uniforms(w).view(np.int32) & np.int32(kept)).view(np.float32)


def _numpy_normals(w: np.ndarray) -> np.ndarray:
    return np.stack(numpy_polar(w[::2], w[1::2]), axis=1).reshape(-1)


on_numpy = types.SimpleNamespace(
    words=_on_numpy(_numpy_words, 32), uniforms=_on_numpy(_numpy_uniforms, 32), uniforms_float16=_on_numpy(lambda w: _numpy_cut(w, FLOAT16), 32),
    uniforms_bfloat16=_on_numpy(lambda w: _numpy_cut(w, BFLOAT16), 32),
    uniforms_float64=_on_numpy(lambda w: (w >> np.uint64(11)).astype(np.float64) * 2.0**-53, 64), normals=_on_numpy(_numpy_normals, 32),
    normals_float64=_on_numpy(_numpy_normals, 64),
)  # fmt: skip


# --- vectors
Made = tuple[Vector, ...]


def _each(make: Callable[[Made], Made]) -> Callable[[Vector, Vector, Vector], Vector]:
    def drawn(place: Vector, seed: Vector, offset: Vector) -> Vector:
        """The numbers at places of int64, each of a block of its own."""
        a, b, c, d = make(words_of(place.unsigned_shift(2) + offset, seed))
        own = (place & 3).to("i32")
        return select(own < 2, select(own == 0, a, b), select(own == 2, c, d))

    return drawn


def words_of(block: Vector, seed: Vector) -> Made:
    """The words of blocks, of int64."""
    return philox_llvm.philox(block, seed.to("i32"), seed.unsigned_shift(32).to("i32"))


def _vector_words(words: Made) -> Made:
    return tuple([w ^ -(1 << 31) for w in words])


def _vector_uniforms(words: Made) -> Made:
    return tuple([w.unsigned_shift(8).to("f32") * 2.0**-24 for w in words])


def _vector_cut(words: Made, kept: int) -> Made:
    return tuple([(u.bits("i32") & kept).bits("f32") for u in _vector_uniforms(words)])


def _vector_normals(words: Made) -> Made:
    return (*philox_llvm.polar(words[0], words[1]), *philox_llvm.polar(words[2], words[3]))


MAKERS: dict[str, Callable[[Made], Made]] = {
    "words": _vector_words, "uniforms": _vector_uniforms, "uniforms_float16": lambda w: _vector_cut(w, FLOAT16),
    "uniforms_bfloat16": lambda w: _vector_cut(w, BFLOAT16), "normals": _vector_normals,
}  # fmt: skip
on_vectors = types.SimpleNamespace(**{name: _each(make) for name, make in MAKERS.items()})  # float64 is numpy's
