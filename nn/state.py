"""A state_dict's versions, and loading one: all is checked first, then all is copied; a mistake leaves the module as it was."""

from __future__ import annotations

import difflib
import warnings
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.ground.errors import AssertedArgumentError, CheckpointError
from tritensor.nn.moving import get_swap_module_params_on_conversion, swap_tensors
from tritensor.nn.parameter import Parameter, is_lazy
from tritensor.tensor.core import Tensor
from tritensor.tensor.parsing.data import as_tensor

EXTRA = "_extra_state"


def defines_extra_state(module: Any, name: str) -> bool:
    """Whether a module's class defines get_extra_state or set_extra_state itself; Module's own only say that they are not there."""
    found = getattr(type(module), name)
    return bool((found.__module__, found.__qualname__) != ("tritensor.nn.module", f"Module.{name}"))


def new_state_dict() -> Any:
    """A state_dict to be filled: an OrderedDict, and in its `_metadata` what is known of each module beside its values, by its name."""
    found: Any = OrderedDict()
    found._metadata = OrderedDict()
    return found


def note_metadata(module: Any, destination: Any, prefix: str) -> dict[str, Any]:
    """What is known of a module beside its values, noted in the destination where that takes it."""
    local = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local
    return local


def _module_metadata(metadata: Any, prefix: str) -> dict[str, Any]:
    """What a state_dict, which may come out of any file, says of one module."""
    found = metadata.get(prefix[:-1]) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


class IncompatibleKeys(NamedTuple):
    """Names that the module has and the state_dict lacks, and the reverse."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if self.missing_keys or self.unexpected_keys:
            return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"
        return "<All keys matched successfully>"


class Entry(NamedTuple):
    """One value that is to be loaded: `module`'s parameter, buffer or extra state `name` gets `given`."""

    module: Any
    name: str
    given: Any
    assign: bool

    def table(self) -> dict[str, Any]:
        return self.module._parameters if self.name in self.module._parameters else self.module._buffers

    def read(self) -> Any:
        """What is there now, to be put back by `store(..., undo=True)`."""
        if self.name == EXTRA:
            return self.module.get_extra_state()
        here = self.table()[self.name]
        return here if self.assign else here.clone()

    def store(self, value: Any, *, undo: bool = False) -> None:
        if self.name == EXTRA:
            self.module.set_extra_state(value)
        elif not self.assign:
            self.table()[self.name].copy_(value)
        # what stood there is put back itself; a buffer is any tensor and needs no wrapping
        elif undo or self.name in self.module._buffers:
            self.table()[self.name] = value
        else:
            here = self.module._parameters[self.name]
            wanted = here.requires_grad
            # the parameter stays the same object for optimizers that hold it
            if get_swap_module_params_on_conversion():
                swap_tensors(here, Parameter(value.detach(), wanted))
                return
            self.module._parameters[self.name] = value.requires_grad_(wanted) if isinstance(value, Parameter) else Parameter(value, wanted)


def check(
    module: Any, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool,
    missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
) -> None:  # fmt: skip
    """Check the entries of one module, not its children's, and append what is to be copied to `local_metadata["plan"]`.

    A loader of the user's own calls this for each module, with metadata that holds no plan: what fits is then copied at once.
    """
    if module._hooks is not None:
        for hook, with_module in list(module._hooks.load_pre.values()):
            first = (module,) if with_module else ()
            hook(*first, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    # without a plan nobody copies later, so what fits is copied at the end of this call
    alone: list[Entry] = []
    plan, assign = local_metadata.get("plan", alone), local_metadata.get("assign_to_params_buffers", False)
    own = {**module._parameters, **{k: b for k, b in module._buffers.items() if k not in module._non_persistent_buffers_set}}
    own = {k: here for k, here in own.items() if here is not None}
    if defines_extra_state(module, "set_extra_state"):
        own[EXTRA] = None
    for name, here in own.items():
        key = prefix + name
        if key not in state_dict:
            if strict:
                missing_keys.append(key)
            continue
        given = state_dict[key]
        if here is not None:
            given = as_tensor(given) if isinstance(given, np.ndarray) else given
            if not isinstance(given, Tensor):
                error_msgs.append(f"{key} is of type {type(given).__name__}; a tensor or a numpy array is expected.")
                continue
            if is_lazy(here) and is_lazy(given):
                continue  # neither has a shape, or values
            if given.shape == (1,) and not is_lazy(here) and here.shape == ():  # PyTorch's files of before there were 0-d tensors
                given = given[0]
            if given.shape != here.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {tuple(given.shape)} from checkpoint, "
                    f"the shape in current model is {tuple(here.shape)}."
                )
                continue
            if given.is_meta and not here.is_meta and not assign:
                error_msgs.append(
                    f"{key} is on device meta and has no values to copy; load it with assign=True, or to_empty() it and fill it."
                )
                continue
            if here.is_meta and not given.is_meta and not assign:
                warnings.warn(
                    f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a no-op. (Did you "
                    "mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the module instead of copying them "
                    "in place?)",
                    stacklevel=2,
                )
        plan.append(Entry(module, name, given, assign))
    with no_grad():
        for entry in alone:
            entry.store(entry.given)
    if strict:
        for key in state_dict:
            if key.startswith(prefix):
                head, _, below = key[len(prefix) :].partition(".")
                if (head not in module._modules) if below else (head not in own):
                    unexpected_keys.append(key)


def load(module: Any, state_dict: dict[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Check the whole tree under `module`; raise CheckpointError if anything is wrong, else copy everything."""
    keys = IncompatibleKeys([], [])
    errors: list[str] = []
    plan: list[Entry] = []
    posts: list[tuple[Any, Any]] = []
    versions = getattr(state_dict, "_metadata", None)

    def walk(part: Any, entries: dict[str, Any], prefix: str) -> None:
        metadata = {**_module_metadata(versions, prefix), "plan": plan, "assign_to_params_buffers": assign}
        part._load_from_state_dict(entries, prefix, metadata, True, *keys, errors)
        for name, child in part._modules.items():
            if child is not None:
                under = f"{prefix}{name}."
                walk(child, {k: v for k, v in entries.items() if k.startswith(under)}, under)
        if part._hooks is not None:
            posts.extend((hook, part) for hook in part._hooks.load_post.values())

    # a copy: hooks of modules may rename keys, and the caller's dict is his
    whole: Any = OrderedDict(state_dict)
    if versions is not None:
        whole._metadata = versions
    walk(module, whole, "")
    # hooks may strike missing keys, so where there are hooks missing keys are judged behind them
    if errors or not posts:
        _refuse(module, strict, keys, errors)
    before = [entry.read() for entry in plan] if posts else []  # which may add to the names that do not fit
    with no_grad():
        for entry in plan:
            entry.store(entry.given)
        try:
            for hook, part in posts:  # may strike names from `keys`, so they come before the last judgement
                if hook(part, keys) is not None:
                    raise AssertedArgumentError(
                        "load_state_dict: a hook of register_load_state_dict_post_hook returned a value; change the keys that it is given in place"
                    )
            _refuse(module, strict, keys, errors)
        except (CheckpointError, AssertedArgumentError):
            # a failed load leaves the module as it was
            for entry, value in zip(plan, before, strict=True):
                entry.store(value, undo=True)
            raise
    return keys


def _refuse(module: Any, strict: bool, keys: IncompatibleKeys, errors: list[str]) -> None:
    lines = []
    if strict and keys.missing_keys:
        lines.append("Missing key(s) in state_dict: " + ", ".join(f'"{k}"' for k in keys.missing_keys) + ".")
    if strict and keys.unexpected_keys:
        # the list as PyTorch writes it, by which programs know the error
        hints = [hint for k in keys.unexpected_keys if (hint := _suggest(module, k, keys.missing_keys))]
        listed = ", ".join(f'"{k}"' for k in keys.unexpected_keys)
        lines.append(f"Unexpected key(s) in state_dict: {listed}." + (f" Did you mean {', '.join(hints)}?" if hints else ""))
    lines += errors
    if lines:
        raise CheckpointError(f"Error(s) in loading state_dict for {type(module).__name__} (nothing was loaded):\n\t" + "\n\t".join(lines))


def _suggest(module: Any, key: str, missing: list[str]) -> str:
    """The name that was probably meant by a key, one that is missing, or else any of the module's; "" where none is like it."""
    names = [n for walk in (module.named_parameters, module.named_buffers) for n, _ in walk(remove_duplicate=False)]
    near = difflib.get_close_matches(key, missing, 1) or difflib.get_close_matches(key, names, 1)
    return f'"{near[0]}" for "{key}"' if near else ""
