"""Hints that a kernel gives the compiler (multiple_of, max_contiguous, max_constancy), checked against the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl

from tritensor.cuda.emulator.sanitizer import Sanitizer

_DIVISIBILITY, _CONTIGUITY, _CONSTANCY = "tt.divisibility", "tt.contiguity", "tt.constancy"
_NAMES = {_DIVISIBILITY: "multiple_of", _CONTIGUITY: "max_contiguous", _CONSTANCY: "max_constancy"}


def promise(input: Any, values: Any, attribute: str, watch: Sanitizer | None) -> Any:
    """`input` with a hint on it. Raises SanitizerError when the values are not as promised.

    Triton reads the three together: along each dimension values fall into groups of max_contiguous values that rise by one, and the
    first value of every group is divisible by multiple_of. Without max_contiguous, multiple_of is taken to be right if it is for groups
    of any length that rise by one. Of pointers whose addresses run on along one dimension the compiler reads what is said of that one alone:
    `tl.multiple_of(ptrs, [16, 16])` of a tile of a matrix promises that its rows begin at such addresses, not its columns.
    """
    values = [getattr(v, "value", v) for v in (values if isinstance(values, list | tuple | tl.tuple) else [values])]
    if not isinstance(input, tl.tensor):
        input = tl.core.to_tensor(input)
    if len(values) != max(1, len(input.shape)):
        raise ValueError(f"{_NAMES[attribute]} has {len(values)} values for {len(input.shape)} dimensions")
    input.handle.set_attr(attribute, values)
    if watch is not None:
        _check(input, input.handle.attr, watch)
    return input


def _check(input: Any, hints: dict[str, Any], watch: Sanitizer) -> None:
    data = input.handle.data.astype(np.int64)
    kind = input.dtype.scalar
    step = max(1, kind.element_ty.primitive_bitwidth // 8) if kind.is_ptr() else 1  # addresses count bytes
    runs = [not _find_uneven(np.moveaxis(data, d, -1), 2, step).any() for d in range(data.ndim)] if kind.is_ptr() else []
    for dim in range(data.ndim):
        lines = np.moveaxis(data, dim, -1)  # (..., values along the dimension)
        size = lines.shape[-1]
        constant = min(hints[_CONSTANCY][dim], size) if _CONSTANCY in hints else 1
        _refuse(_find_uneven(lines, constant, 0), lines, f"max_constancy of {constant}", watch, dim)
        run = min(hints[_CONTIGUITY][dim], size) if _CONTIGUITY in hints else 0
        if run:
            _refuse(_find_uneven(lines, run, step), lines, f"max_contiguous of {run}", watch, dim)
        if _DIVISIBILITY in hints and not (any(runs) and not runs[dim]):
            by = hints[_DIVISIBILITY][dim]
            lengths = [run] if run else [n for n in _powers(size) if not _find_uneven(lines, n, step).any()]
            if not any((_group_firsts(lines, n) % by == 0).all() for n in lengths):
                _refuse(
                    _group_firsts(lines, lengths[0]) % by != 0,
                    _group_firsts(lines, lengths[0]),
                    f"multiple_of {by}",
                    watch,
                    dim,
                    lengths[0],
                )


def _powers(size: int) -> list[int]:
    """The lengths that groups may have, longest first."""
    return [1 << n for n in range(size.bit_length() - 1, -1, -1)]


def _group_firsts(lines: np.ndarray, length: int) -> np.ndarray:
    return lines[..., ::length]


def _find_uneven(lines: np.ndarray, length: int, step: int) -> np.ndarray:
    """Which values do not follow from the first of their group of `length` in steps of `step`."""
    groups = np.repeat(_group_firsts(lines, length), length, axis=-1)[..., : lines.shape[-1]]
    return lines != groups + step * (np.arange(lines.shape[-1]) % length)


def _refuse(wrong: np.ndarray, lines: np.ndarray, hint: str, watch: Sanitizer, dim: int, step: int = 1) -> None:
    """Raise when a value is not as promised, with the first that is not; `lines` holds every `step`-th along the dimension, which stands last there."""
    if wrong.any():
        at = tuple(int(n) for n in np.argwhere(wrong)[0])
        index = [*at[:-1]]
        index.insert(dim, at[-1] * step)
        raise watch.error(f"the hint {hint} is false: a value is {int(lines[at])}, at {index} of the block")
