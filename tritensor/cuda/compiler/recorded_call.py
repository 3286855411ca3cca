"""A launch kept for later: what is compiled for it, its grid, its numbers and how large its arrays are."""

from __future__ import annotations

from typing import Any, NamedTuple

from tritensor.cuda.compiler.arguments import DESCRIPTOR, LaunchCall, Specialization, specialize


class Call(NamedTuple):
    """One recorded launch with all that a prediction asks: `values` are the run-time arguments as specialize() gives them, arrays as
    ("*", bytes) and descriptors as (DESCRIPTOR, bytes)."""

    spec: Specialization
    grid: tuple[int, ...]
    values: tuple[tuple[str, Any], ...]

    def sizes(self) -> list[int]:
        """Bytes of each argument that is an array, by its place among the values; 0 for the others."""
        return [value if kind in ("*", DESCRIPTOR) else 0 for kind, value in self.values]


def call_of(launched: LaunchCall) -> Call:
    """A launch for later: of its arrays only their sizes are kept, memory that several elements share counted once."""

    def nbytes(x: Any) -> int:
        total = x.itemsize
        for n, stride in zip(x.shape, x.strides, strict=True):
            # a stride of 0 reads the same memory again
            total *= n if stride or n == 0 else 1
        return int(total)

    spec, values = specialize(launched)
    # sizes alone: a list of every launch of a program must not keep its memory
    kept = [
        (kind, nbytes(value)) if kind[0] == "*" else (kind, nbytes(value.array)) if kind == DESCRIPTOR else (kind, value)
        for kind, value in values
    ]
    return Call(spec, launched.grid, tuple(kept))
