"""Reasons why tests of a library's own suite do not pass here: found by what the test is called, or by its error."""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping

UNKNOWN = "not looked into"

# (pattern of `test: error`, reason), the first that matches. Those of every library stand under "".
REASONS: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        (r": NotImplementedError: (torch\.)?fx\.", "asks for fx, which is not here yet"),
        (r"sparse_(coo|csr|csc|bsr|bsc)|torch\.sparse|\.to_sparse|layout is strided", "sparse layouts are not here yet"),
        (r"nested_tensor|torch\.nested|jagged", "nested layouts are not here yet"),
        (r"cpp_extension", "compiles C++ against PyTorch"),
        (r"jit\.(trace|script): nothing is compiled", "takes jit's warning, that nothing is compiled, for an error"),
        (r": Failed: Timeout|: no end after", "takes too long"),
    ),
}


def of(library: str, test: str, error: str) -> str:
    """The reason why a test of a library does not pass."""
    line = f"{test}: {error}"
    return next((why for pattern, why in (*REASONS.get(library, ()), *REASONS[""]) if re.search(pattern, line)), UNKNOWN)


def counted(library: str, others: Mapping[str, str]) -> dict[str, int]:
    """{reason: how many tests}, the most frequent first."""
    return dict(collections.Counter(of(library, test, error) for test, error in others.items()).most_common())
