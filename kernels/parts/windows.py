"""Windows that slide over an image, for pooling and for patches: their sizes under one set of names."""

from __future__ import annotations

from typing import NamedTuple


class Windows(NamedTuple):
    """Windows of (kh, kw) cells that slide over images (H, W): OH rows and OW columns of them, and their steps, padding and dilation."""

    height: int
    width: int
    rows: int  # OH
    cols: int  # OW
    kh: int
    kw: int
    sh: int
    sw: int
    ph: int
    pw: int
    dh: int
    dw: int

    @property
    def quarters(self) -> bool:
        """Whether it is the common 2 x 2 windows side by side."""
        return (self.kh, self.kw, self.sh, self.sw, self.ph, self.pw, self.dh, self.dw) == (2, 2, 2, 2, 0, 0, 1, 1) and (
            2 * self.rows <= self.height and 2 * self.cols <= self.width
        )

    @property
    def apart(self) -> bool:
        """Whether no two windows share a cell."""
        return self.sh > (self.kh - 1) * self.dh and self.sw > (self.kw - 1) * self.dw
