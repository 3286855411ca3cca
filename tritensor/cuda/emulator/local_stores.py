"""Loads by a program of its own stores: a GPU's threads run at their own pace, so the sanitizer wants a barrier between the two."""

from __future__ import annotations

import numpy as np

_LANE = 21  # bits for a lane's place in its tile; tiles have at most 2^20 elements
_SIZE = 5  # bits for the logarithm of the tile's size


class OwnStores:
    """By allocation and byte: which lane of how large a tile stored there last, and in which epoch; a program begins one, and so does a barrier.

    A lane that loads what the same lane of a tile of the same size stored is served by the same thread. Any other is served by another, which
    may not have stored yet.
    """

    def __init__(self) -> None:
        self._shadows: dict[int, np.ndarray] = {}
        self._epoch = 1

    def barrier(self) -> None:
        """From here on, all that was stored before is seen by all threads of the program; or another program begins."""
        self._epoch += 1

    def stored(self, at: np.ndarray, places: np.ndarray, size: int, base: int, nbytes: int) -> None:
        """The lanes `places` of a tile of `size` elements store to the bytes `at` of the allocation at `base`."""
        shadow = self._shadows.get(base)
        if shadow is None:
            shadow = self._shadows[base] = np.zeros(nbytes, np.int64)
        shadow[at] = self._marks(places, size)

    def foreign(self, at: np.ndarray, places: np.ndarray, size: int, base: int) -> np.ndarray:
        """Which of the lanes that load there read what another lane stored in this epoch."""
        shadow = self._shadows.get(base)
        if shadow is None:
            return np.zeros(at.shape, bool)
        marks = shadow[at]
        return (marks >> (_LANE + _SIZE) == self._epoch) & (marks != self._marks(places, size))

    def _marks(self, places: np.ndarray, size: int) -> np.ndarray:
        return (self._epoch << (_LANE + _SIZE)) | ((size.bit_length() - 1) << _LANE) | places
