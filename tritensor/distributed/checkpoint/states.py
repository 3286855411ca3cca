"""Nested state dicts flattened to dicts whose keys are paths, and back; values beside tensors as JSON or pickle; Stateful, the protocol of their owners."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

from tritensor.distributed.checkpoint.boxes import as_part
from tritensor.distributed.objects import is_plain
from tritensor.ground.errors import CheckpointError
from tritensor.optim.optimizer import Optimizer
from tritensor.tensor.core import Tensor


@runtime_checkable
class Stateful(Protocol):
    """A module, an optimizer, a sampler: save asks it for its state, load gives it the one that was saved."""

    def state_dict(self) -> dict[str, Any]:
        """The state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state."""


StatefulT = TypeVar("StatefulT", bound=Stateful)


def expand_stateful(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The same dict, each Stateful replaced by its state."""
    return {k: _read_state(v) if isinstance(v, Stateful) and not isinstance(v, Tensor) else v for k, v in state_dict.items()}


def _read_state(stateful: Stateful) -> dict[str, Any]:
    """An optimizer's moments are the parts that the parameters are: else those of all processes would pass for one tensor, which one of them saves."""
    found = stateful.state_dict()
    # Only an optimizer's moments have the shapes of parameters; other states say themselves which of their tensors are parts.
    if not isinstance(stateful, Optimizer):
        return found
    params = [p for group in stateful.param_groups for p in group["params"]]
    numbers = [n for group in found["param_groups"] for n in group["params"]]
    of = dict(zip(numbers, params, strict=True))
    state = {n: {k: as_part(of[n], v) for k, v in entries.items()} if n in of else entries for n, entries in found["state"].items()}
    return {**found, "state": state}


def map_values(state: Any, do: Callable[[Any], Any]) -> Any:
    """A state with another value in the place of each."""
    if isinstance(state, dict):
        return {k: map_values(v, do) for k, v in state.items()}
    # Exact types: a namedtuple's class takes its fields one by one.
    if type(state) in (list, tuple):
        return type(state)(map_values(v, do) for v in state)
    return do(state)


def iter_leaves(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(path, value) of all that lies in nested dicts, and in lists that hold a tensor or a dict. Empty dicts, of whatever class, are values."""
    if isinstance(state, dict):
        for key, value in state.items():
            yield from iter_leaves(value, (*path, key))
        # An empty dict has no entries that could lead to it: without a leaf of its own it would be lost.
        if path and not state:
            yield path, {}
    elif isinstance(state, list) and any(isinstance(v, Tensor | dict) for v in state):
        # Plain lists stay one value: an entry of metadata for each number of a long list would make the JSON unreadable.
        for i, value in enumerate(state):
            yield from iter_leaves(value, (*path, i))
    else:
        yield path, state


def join_path(path: tuple[Any, ...]) -> str:
    """The path as one word, "optimizer.state.0.step". Raises CheckpointError for a key that is neither text nor a number."""
    for part in path:
        # JSON and the dotted key turn other types into text, and loading would not find the entry again.
        if not isinstance(part, str | int):
            raise CheckpointError(
                f"checkpoint: the key {part!r} in {path} is a {type(part).__name__}; keys of a state are text and whole numbers"
            )
    return ".".join(map(str, path))


def set_entry(state: Any, path: tuple[Any, ...], value: Any) -> None:
    """Give the entry at a path a new value."""
    for part in path[:-1]:
        state = state[part]
    state[path[-1]] = value


def refuse_circles(value: Any, path: tuple[Any, ...] = (), above: tuple[int, ...] = ()) -> None:
    """Raise CheckpointError for a dict, list or tuple that holds itself: no path leads to its end."""
    if not isinstance(value, dict | list | tuple):
        return
    # Only the containers on the way are compared: one list that stands in two entries is no circle.
    if id(value) in above:
        raise CheckpointError(
            f"checkpoint: {'.'.join(map(str, path))} is a {type(value).__name__} that holds itself; a checkpoint of several ranks names each value by "
            "the path that leads to it: leave it out, or save() it to a file of its own"
        )
    for key, inside in value.items() if isinstance(value, dict) else enumerate(value):
        refuse_circles(inside, (*path, key), (*above, id(value)))


def flatten_state(state: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any], dict[str, tuple[Any, ...]]]:
    """(tensors, other values, paths) by key. Raises CheckpointError for two paths of one key, and for what holds itself."""
    refuse_circles(state)
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    paths: dict[str, tuple[Any, ...]] = {}
    for path, value in iter_leaves(state):
        key = join_path(path)
        # {"a.b": 1} and {"a": {"b": 1}} have one dotted key; the second would overwrite the first without a word.
        if key in paths:
            raise CheckpointError(f"checkpoint: {path} and {paths[key]} have one key, {key}; rename one of them")
        paths[key] = path
        if isinstance(value, Tensor):
            tensors[key] = value
        else:
            values[key] = value
    return tensors, values, paths


def path_to_json(state: Any, path: tuple[Any, ...]) -> list[Any]:
    """A path as JSON: keys of dicts as they are, indices of lists as [0], [1], ..."""
    steps: list[Any] = []
    for part in path:
        # JSON has no other way to tell the index 0 of a list from the key 0 of a dict.
        steps.append([part] if isinstance(state, list) else part)
        state = state[part]
    return steps


def insert_entry(state: dict[Any, Any], steps: list[Any], value: Any) -> None:
    """Set the entry at a path of a state that is being built; dicts and lists on the way are created."""
    inside: Any = state
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        at = step
        if isinstance(step, list):
            (at,) = step
            # Ranks may bring the entries of a list in any order.
            inside.extend([None] * (at + 1 - len(inside)))
        if following is None:
            inside[at] = value
            return
        if (inside[at] if isinstance(inside, list) else inside.get(at)) is None:
            inside[at] = [] if isinstance(following, list) else {}
        inside = inside[at]


def encode_values(values: dict[str, Any], allow_pickle: bool) -> dict[str, Any]:
    """Values as JSON: tuples marked, others pickled where that is allowed. Where it is not, text and numbers of a class of their own are written
    as plain ones, and what else JSON does not say raises CheckpointError, as does what pickle refuses."""
    return {key: _encode_value(key, value, allow_pickle) for key, value in values.items()}


def _to_builtin(value: Any) -> Any:
    """Text and numbers of a class of their own (an IntEnum's member, a version) as the text or number that they are equal to, in lists and dicts too."""
    # A list or dict of a class of its own is refused later on: its class would be lost.
    if type(value) is list:
        return [_to_builtin(v) for v in value]
    if type(value) is dict:
        return {k: _to_builtin(v) for k, v in value.items()}
    if isinstance(value, str):
        return str.__str__(value)
    # Before int, of which bool is a subclass: int.__index__ would make True a 1.
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int.__index__(value)
    return float.__float__(value) if isinstance(value, float) else value


def _encode_value(key: str, value: Any, allow_pickle: bool) -> Any:
    if is_plain(value):
        return value
    if not allow_pickle:
        value = _to_builtin(value)
        if is_plain(value):
            return value
    # JSON has lists alone; without the mark a tuple would come back as a list, and betas == (0.9, 0.999) fail.
    if type(value) is tuple and is_plain(found := list(value) if allow_pickle else _to_builtin(list(value))):
        return {"tuple": found}
    if not allow_pickle:
        raise CheckpointError(
            f"checkpoint: {key} is a {type(value).__name__}, which JSON does not say all of; a checkpoint of several ranks holds tensors, numbers, text, "
            "lists, tuples and dicts of them; convert it, leave it out, or have it pickled: storage_writer=FileSystemWriter(path, allow_pickle=True)"
        )
    try:
        return {"pickle": base64.b64encode(pickle.dumps(value)).decode()}
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        # pickle raises all three: for local classes AttributeError, for handles such as locks TypeError.
        raise CheckpointError(
            f"checkpoint: {key} is a {type(value).__name__}, which cannot be pickled ({error}); convert it or leave it out"
        ) from error


def decode_value(key: str, value: Any, path: str, allow_pickle: bool) -> Any:
    """The value that `encode_values` wrote. Raises CheckpointError for a pickled one where that is not allowed, or does not work."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, inside),) = value.items()
    if kind == "tuple":
        return tuple(inside)
    # Unpickling runs code of whoever wrote the folder, so the reader has to ask for it.
    if not allow_pickle:
        raise CheckpointError(
            f"load: {key} in {path} is pickled, and reading it runs what it says; for a checkpoint that you trust give "
            "storage_reader=FileSystemReader(path, allow_pickle=True), or leave the key out of the state"
        )
    try:
        return pickle.loads(base64.b64decode(inside, validate=True))
    except Exception as error:  # a pickle raises whatever its classes do
        raise CheckpointError(
            f"load: {key} in {path} cannot be unpickled ({type(error).__name__}: {error}); load it where its classes are as they were"
        ) from error
