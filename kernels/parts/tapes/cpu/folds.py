"""Reductions on SIMD vectors: the functions of a reduction, which are Triton's, read over vectors and over single numbers of a row."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.kernels.parts import backends, reduction
from tritensor.kernels.parts.cpu.simd_maths import on_vectors
from tritensor.kernels.parts.tapes.moments import merged
from tritensor.llvm import simd_functions as native
from tritensor.llvm.simd import Code, Vector, select

STATES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(np.int32): "i32", np.dtype(np.int64): "i64"}
State = tuple[Vector, ...]
# sums and moments are kept in float64: a sum of a million float32 loses its last digits lane by lane
KEPT_WIDE = frozenset((reduction.add, reduction.add_pairs, merged))

# what reductions say in Triton's own words; a type is the name of its kind
_LANGUAGE = types.SimpleNamespace(
    maximum=lambda a, b, propagate_nan=None: native.maximum(a, b), minimum=lambda a, b, propagate_nan=None: native.minimum(a, b),
    where=on_vectors.where, abs=native.absolute, zeros_like=lambda x: x.code.constant(0, x.kind), PropagateNan=types.SimpleNamespace(ALL=None),
    int32="i32", int64="i64", float32="f32", float64="f64",
)  # fmt: skip
_functions = on_vectors.having(modules={"triton.language": _LANGUAGE})


def translated(function: Any) -> Callable[..., Any]:
    """A reduction's function over vectors."""
    return backends.translate(function, _functions)


def as_states(given: Any, kinds: Sequence[str], code: Code) -> State:
    """What a function gives, one vector or several, numbers among them, in the kinds of states."""
    found = given if isinstance(given, tuple) else (given,)
    return tuple([x.to(k) if isinstance(x, Vector) else code.constant(x, k) for x, k in zip(found, kinds, strict=True)])


class _Typed(Vector):
    """A vector that tells its type, as reductions of places ask."""

    __slots__ = ()

    @property
    def dtype(self) -> str:
        """The name of its kind."""
        return self.kind


class FoldCode:
    """A Fold's functions over vectors: `kinds` are those of its states, `kept` those that they are accumulated in."""

    def __init__(self, functions: Any, states: Sequence[np.dtype]) -> None:
        self.kinds = tuple([STATES[d] for d in states])
        wide = functions.combine in KEPT_WIDE
        self.kept = tuple(["f64" if wide and k == "f32" else k for k in self.kinds])
        self.early = functions.combine is merged  # what is divided is wide before it is
        self.identity = functions.identity(tuple(states))
        self.map, self.combine = translated(functions.map), translated(functions.combine)
        self.finish = None if functions.finish is None else translated(functions.finish)
        self.indexed = functions.map is not reduction.value  # others may ask for an element's place; who does not leaves no code of it

    def finished(self, state: State, scalars: Sequence[Vector]) -> tuple[Any, ...]:
        """What a state comes to."""
        found = state if self.finish is None else self.finish(*[_Typed(x.code, x.name, x.kind) for x in state], *scalars)
        return found if isinstance(found, tuple) else (found,)

    def nothing(self, code: Code, kinds: Sequence[str]) -> State:
        """The state of no elements."""
        return tuple([code.constant(x, k) for x, k in zip(self.identity, kinds, strict=True)])

    def masked(self, state: State, mask: Vector) -> State:
        """A state in the lanes that are elements, that of nothing in the others."""
        return tuple([select(mask, x, e) for x, e in zip(state, self.nothing(mask.code, [x.kind for x in state]), strict=True)])

    def joined(self, code: Code, total: State, states: Sequence[State]) -> State:
        """A total with some states more: those by pairs first, so that none waits for all others."""
        states = [tuple([Vector(code, x.name, x.kind) for x in s]) for s in states]
        if self.early:
            states = [as_states(s, self.kept, code) for s in states]
        while len(states) > 1:
            pairs = zip(states[::2], states[1::2], strict=True)
            states = [as_states(self.combine(*a, *b), [x.kind for x in a], code) for a, b in pairs]
        return as_states(self.combine(*total, *as_states(states[0], self.kept, code)), self.kept, code)

    def over_lanes(self, state: State) -> State:
        """All lanes of a state combined by halves, the result in every lane."""
        code = state[0].code
        half = code.width // 2
        while half:
            order = ", ".join(f"i32 {(i + half) % code.width}" for i in range(code.width))
            moved = [
                code.emit(x.kind, f"shufflevector {code.type(x.kind)} {x.name}, {code.type(x.kind)} poison, <{code.width} x i32> <{order}>")
                for x in state
            ]
            state = as_states(self.combine(*state, *moved), self.kept, code)
            half //= 2
        return state
