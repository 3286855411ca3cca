"""docs/kernel_parts.md, the authors' list of shared helpers, says what the docstrings of kernels/parts say."""

from __future__ import annotations

from tests.kernels.parts.parts_page import PAGE, page


def test_the_page_is_what_the_docstrings_say() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m tests.kernels.parts.parts_page"
