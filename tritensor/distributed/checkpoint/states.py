"""States of states: nested dicts and lists as flat ones, whose keys are the paths, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from tritensor.distributed.objects import is_plain
from tritensor.errors import CheckpointError
from tritensor.tensor.core import Tensor


@runtime_checkable
class Stateful(Protocol):
    """What has a state of its own: a module, an optimizer, a sampler."""

    def state_dict(self) -> dict[str, Any]:
        """The state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state."""


def states_of(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The same with the state of each Stateful in its place."""
    return {k: v.state_dict() if isinstance(v, Stateful) and not isinstance(v, Tensor) else v for k, v in state_dict.items()}


def leaves(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(path, value) of all that lies in nested dicts, and in lists that hold a tensor or a dict. Empty dicts are values."""
    if isinstance(state, dict) and (state or not path):
        for key, value in state.items():
            yield from leaves(value, (*path, key))
    elif isinstance(state, list) and any(isinstance(v, Tensor | dict) for v in state):
        for i, value in enumerate(state):
            yield from leaves(value, (*path, i))
    else:
        yield path, state


def key_of(path: tuple[Any, ...]) -> str:
    """The path as one word, "optimizer.state.0.step". Raises CheckpointError for a key that is neither text nor a number."""
    for part in path:
        if not isinstance(part, str | int):
            raise CheckpointError(
                f"checkpoint: the key {part!r} in {path} is a {type(part).__name__}; keys of a state are text and whole numbers"
            )
    return ".".join(map(str, path))


def put(state: Any, path: tuple[Any, ...], value: Any) -> None:
    """Give the entry at a path a new value."""
    for part in path[:-1]:
        state = state[part]
    state[path[-1]] = value


def flat(state: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any], dict[str, tuple[Any, ...]]]:
    """(tensors, other values, paths) by key. Raises CheckpointError for values that JSON does not say all of, and for two paths of one key."""
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    paths: dict[str, tuple[Any, ...]] = {}
    for path, value in leaves(state):
        key = key_of(path)
        if key in paths:
            raise CheckpointError(f"checkpoint: {path} and {paths[key]} have one key, {key}; rename one of them")
        paths[key] = path
        if isinstance(value, Tensor):
            tensors[key] = value
        else:
            values[key] = _plain(key, value)
    return tensors, values, paths


def _plain(key: str, value: Any) -> Any:
    if isinstance(value, tuple) and is_plain(list(value)):
        return {"tuple": list(value)}
    if isinstance(value, dict) and set(value) == {"tuple"}:
        raise CheckpointError(f"checkpoint: {key} is a dict with the one key 'tuple', by which tuples are written; give it another")
    if not is_plain(value):
        raise CheckpointError(
            f"checkpoint: {key} is a {type(value).__name__}, which JSON does not say all of; a checkpoint of several ranks holds tensors, numbers, text, "
            "lists, tuples and dicts of them (nothing is pickled); convert it, or leave it out"
        )
    return value


def unplain(value: Any) -> Any:
    """The value that `flat` wrote."""
    return tuple(value["tuple"]) if isinstance(value, dict) and set(value) == {"tuple"} else value
