"""Generators of random numbers: a seed and a place in its stream, advanced by every op that draws. PyTorch's `torch.random`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tritensor.ground.device import as_device
from tritensor.ground.naming.type_names import named
from tritensor.ground.process import locks
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import factor_of_draws, running

_MASK = 0xFFFFFFFFFFFFFFFF
_new_tensor: Callable[[np.ndarray], Any]  # set by tritensor.tensor.core, a floor above


def install(new_tensor: Callable[[np.ndarray], Any]) -> None:
    """Register the constructor of tensors. Called once, by tritensor.tensor.core, which stands above this file."""
    global _new_tensor
    _new_tensor = new_tensor


def blocks_used(n: int, bits: int) -> int:
    """How many blocks of Philox, 128 bits each, hold n words of `bits` (32 or 64) bits: so far a draw advances its generator."""
    return -(-n * bits // 128)


def integer_bits(span: int) -> int:
    """Size of the words that one of `span` integers is drawn from."""
    return 32 if span <= 1 << 28 else 64


_draw_lock = locks.lock()  # two threads never draw the same numbers


@named("torch._C")
class Generator:
    """A stream of Philox blocks: `seed` chooses the stream, `offset` is the next unused block (see kernels/parts/random_words/philox.py).

    The same seed and offset give the same numbers on every device, so a generator belongs to none; `device` is accepted
    because PyTorch's takes it.
    """

    __slots__ = ("device", "key", "offset")

    def __init__(self, device: Any = "cpu") -> None:
        self.device = as_device(device)
        self.key = 67280421310721  # what PyTorch starts with: runs repeat unless they are seeded otherwise
        self.offset = 0

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed` (any integer, taken modulo 2^64) from its beginning; returns self.

        Raises CaptureError while a CUDA graph is captured on this thread: no replay would see it.
        """
        return self._move(int(seed) & _MASK, 0)

    def _move(self, key: int, offset: int) -> Generator:
        if here.capture is not None:
            # A replay draws from where the capture noted: moving the stream meanwhile would be lost.
            here.capture.moves(self, key, offset)
        with _draw_lock:
            self.key, self.offset = key, offset
        return self

    def initial_seed(self) -> int:
        """The seed in use."""
        return self.key

    def seed(self) -> int:
        """Seed from the operating system's entropy and return that seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self.key

    def draw(self, blocks: int) -> tuple[int, int]:
        """(seed, offset) for an op that uses `blocks` blocks; moves on behind them. In a capture each replay draws anew."""
        if running.levels:
            # Inside vmap with different randomness each example has its share of the stream.
            blocks *= factor_of_draws()
        if here.places:
            return here.places.pop(0)  # type: ignore[no-any-return]
        if here.capture is not None:
            return here.capture.draw(self, blocks)
        place = self.take(blocks)
        if here.noting is not None:
            here.noting.note_draw(blocks if self is default_generator else None, place)
        return place

    def take(self, blocks: int) -> tuple[int, int]:
        """`draw` outside vmap and captures."""
        with _draw_lock:
            key, offset = self.key, self.offset
            self.offset = (offset + blocks) & _MASK
        return key, offset

    def get_state(self) -> Any:
        """The state as a uint8 tensor of 16 elements: seed, then offset, little-endian."""
        return _new_tensor(np.array([self.key, self.offset], "<u8").view(np.uint8))

    def set_state(self, state: Any) -> Generator:
        """Continue where `get_state` was called; returns self. Raises ValueError for what it did not give."""
        values = np.array(state.cpu().numpy() if hasattr(state, "cpu") else state)
        # States of PyTorch's generators are longer: they mean other numbers.
        if values.dtype != np.uint8 or values.shape != (16,):
            raise ValueError(f"set_state: a state is 16 uint8 values, given: shape {values.shape}, {values.dtype}")
        key, offset = values.view("<u8")
        return self._move(int(key), int(offset))

    def clone_state(self) -> Generator:
        """A generator in the same state."""
        other = Generator(self.device)
        other.key, other.offset = self.key, self.offset
        return other

    def __reduce__(self) -> Any:
        return _restored, (str(self.device), self.key, self.offset)

    def __repr__(self) -> str:
        return f"Generator(seed={self.key}, offset={self.offset})"


def _restored(device: str, key: int, offset: int) -> Generator:
    g = Generator(device)
    g.key, g.offset = key, offset
    return g


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, for all devices; returns it."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The default generator's seed."""
    return default_generator.initial_seed()


def seed() -> int:
    """Seed the default generator from the operating system's entropy and return that seed."""
    return default_generator.seed()


def get_rng_state() -> Any:
    """The default generator's state, a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Put the default generator into a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, *, device_type: str | None = None) -> Iterator[None]:
    """Draws inside the block leave the default generator as it was. `devices` and `device_type` are accepted: one generator serves all."""
    key, offset = default_generator.key, default_generator.offset
    try:
        yield
    finally:
        # enabled=False: PyTorch's way to switch the block off without taking it away.
        if enabled:
            default_generator.key, default_generator.offset = key, offset
