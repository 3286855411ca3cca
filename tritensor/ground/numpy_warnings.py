"""Warnings of numpy's, of infinities and NaN: PyTorch gives none, so nobody is to see them from here, whatever the program's filters say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def quietly(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """f(*args, **kwargs) once more, without warnings: where the filters make errors of them (`python -W error`, pytest's filterwarnings), the first try has
    ended in a RuntimeWarning. To ask for silence before each call would cost a third of an addition; to catch the error costs those who see none nothing."""
    with np.errstate(all="ignore"):
        return f(*args, **kwargs)
