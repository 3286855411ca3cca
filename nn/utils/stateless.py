"""`functional_call`: a module called with other parameters and buffers than its own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor

Tensors = Mapping[str, Tensor]
_NOTHING: Any = object()


def functional_call(
    module: Module, parameters_and_buffers: Tensors, args: Any = None, kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """module(*args, **kwargs) with these tensors, by name, in place of its own, which it has back afterwards. PyTorch's older name of
    `func.functional_call`, which says more."""
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0: nn.utils.stateless.functional_call; call func.functional_call instead",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(
    module: Module, parameters_and_buffers: Tensors, args: Any = None, kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """module(*args, **kwargs) with these tensors in place of its own: differentiable by them.

    Args:
        args: a tuple, one argument, or None.
        tie_weights: a tensor that the module has under several names is replaced under all of them.
        strict: raise for names that the module has and the mapping lacks, and the reverse.

    Raises:
        TypeError: a value that is no tensor. RuntimeError: names that do not fit, if strict. ValueError: two tensors for one that is tied.
    """
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*given, **(kwargs or {}))


def _spread_to_tied(own: dict[str, Tensor], given: Tensors) -> dict[str, Tensor]:
    """`given`, and under the other names of what it replaces the same. Raises ArgumentError where two tensors are given for one."""
    names: dict[int, list[str]] = {}
    for name, member in own.items():
        names.setdefault(id(member), []).append(name)  # tied: one tensor under several names
    found = dict(given)
    for group in names.values():
        told = {name: given[name] for name in group if name in given}
        if len(group) < 2 or not told:
            continue
        first, *others = told.items()
        for name, value in others:
            if value is not first[1]:  # the same tensor twice is no contradiction
                raise ArgumentError(
                    f"functional_call: '{first[0]}' and '{name}' are one tensor of the module (tied), and two are given; give one, or tie_weights=False"
                )
        found.update(dict.fromkeys(group, first[1]))
    return found


def _check_tensors(given: Tensors) -> None:
    if not isinstance(given, Mapping):
        raise TypeError(f"functional_call: parameters_and_buffers is a {type(given).__name__}; give a dict of tensors by name")
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"functional_call: '{name}' is a {type(value).__name__}, {value!r} is not an instance of Tensor; give a tensor")


def _refuse_names(module: Module, own: dict[str, Tensor], given: Tensors) -> None:
    missing, unexpected = [n for n in own if n not in given], [n for n in given if n not in own]
    if missing or unexpected:
        said = [f"Unexpected key(s): {', '.join(map(repr, unexpected))}."] if unexpected else []
        said += [f"Missing key(s): {', '.join(map(repr, missing))}."] if missing else []
        raise RuntimeError(f"functional_call: Error(s) in reparametrizing for {type(module).__name__}: {' '.join(said)}")


def _find_table(module: Module, name: str) -> tuple[Any, str]:
    """Where a module below keeps what is called `name`: a dictionary, and the key in it."""
    path, _, last = name.rpartition(".")
    part = module.get_submodule(path)
    for table in (part._parameters, part._buffers):
        if last in table:
            return table, last
    # a pruned weight is a plain attribute, and no member by that name
    return part.__dict__, last


@contextlib.contextmanager
def _reparametrize_module(module: Module, given: Tensors, *, tie_weights: bool = False, strict: bool = False) -> Iterator[None]:
    """Inside, the module has these tensors; afterwards its own again. What it has put in their places meanwhile (buffers that are assigned anew)
    is left in `given`."""
    # by all their names: a member that is tied may be given under any
    own = {name: member for walk in (module.named_parameters, module.named_buffers) for name, member in walk(remove_duplicate=False)}
    _check_tensors(given)
    new = _spread_to_tied(own, given) if tie_weights else dict(given)
    if strict:
        _refuse_names(module, own, new)
    places = {name: _find_table(module, name) for name in new}
    before = {name: table.get(key, _NOTHING) for name, (table, key) in places.items()}  # None is a value that a buffer may have
    try:
        for name, (table, key) in places.items():
            table[key] = new[name]
        yield
    finally:
        for name, (table, key) in places.items():
            # a buffer may have been assigned anew inside: that is a result of the call, not the module's
            left = table.get(key, _NOTHING)
            if name in given and left is not new[name] and left is not _NOTHING and isinstance(given, dict):
                given[name] = left
            if before[name] is _NOTHING:
                table.pop(key, None)
            else:
                table[key] = before[name]
