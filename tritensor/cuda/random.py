"""PyTorch's `torch.cuda.random`: one generator serves all devices here, so these are other names for the functions of `tritensor.random`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor import random
from tritensor.cuda import availability


def manual_seed(seed: int) -> None:
    """Seed the default generator, for all devices, the CPU among them."""
    random.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """The same as `manual_seed`."""
    manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the operating system's entropy and return that seed."""
    return random.seed()


def initial_seed() -> int:
    """The default generator's seed."""
    return random.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The default generator's state, a uint8 tensor on the CPU, whichever device is named."""
    return random.get_rng_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Put the default generator into a state that `get_rng_state` gave, whichever device is named."""
    random.set_rng_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The state for each visible GPU: all are the default generator's, and there are none without a GPU."""
    return [random.get_rng_state() for _ in range(availability.gpus())]


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Put the default generator into the first of the states that `get_rng_state_all` gave; none change nothing."""
    for state in list(new_states)[:1]:  # all that get_rng_state_all gave are the one generator's
        random.set_rng_state(state)
