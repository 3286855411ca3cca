"""Wrapper modules that pass attributes on and keep their name out of state dicts: the base class, and activation checkpointing and offloading."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class Wrapper(Module):
    """A module around another, which it holds under a name of its class and whose attributes it has, too."""

    _holds_under: str

    @property
    def module(self) -> Module:
        """The module inside."""
        found = self._modules[self._holds_under]
        assert found is not None
        return found

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            # Before __init__ has put the module in, and while a copy is made, there is nothing to ask.
            if self._holds_under not in self.__dict__.get("_modules", ()):
                raise
            return getattr(self._modules[self._holds_under], name)

    def __getitem__(self, key: int) -> Any:
        return self.module[key]  # type: ignore[index]


def add_wrapper_name(wrapper: Any, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
    """load_state_dict comes to a wrapper: names as they are inside of it."""
    inside = f"{prefix}{wrapper._holds_under}."
    # Files keep the plain names, so that a model loads with or without the wrapper.
    for key in [k for k in state_dict if k.startswith(prefix) and not k.startswith(inside)]:
        state_dict[inside + key.removeprefix(prefix)] = state_dict.pop(key)


class ActivationWrapper(Wrapper):
    """A module around `mod`; a class below says what forward does."""

    _holds_under = _CHECKPOINT_WRAPPED_MODULE

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._modules[_CHECKPOINT_WRAPPED_MODULE] = mod
        self.register_state_dict_post_hook(_drop_wrapper_name)
        self.register_load_state_dict_pre_hook(add_wrapper_name)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """Those of the module inside, under its names."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), p


def _drop_wrapper_name(wrapper: Module, state_dict: Any, prefix: str, local_metadata: Any) -> None:
    """Names without the wrapper's."""
    held = list(state_dict.items())
    state_dict.clear()
    for key, value in held:
        # Only this wrapper's entries: the dict also holds those of modules that came before.
        ours = key.startswith(prefix + _CHECKPOINT_PREFIX)
        state_dict[prefix + key.removeprefix(prefix + _CHECKPOINT_PREFIX) if ours else key] = value
