"""Containers: Sequential (of modules and plain functions), ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tritensor.nn.module import Module, indented
from tritensor.nn.parameter import Parameter
from tritensor.tensor.core import Tensor


class Lambda(Module):
    """A plain function as a module: what Sequential makes of one. It has no state and prints as the function's name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        if not callable(function):
            raise TypeError(f"Sequential: {type(function).__name__} is not a Module subclass, and not a function; give one of these")
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", None) or repr(self.function)


def _as_module(part: Any) -> Module | None:
    return part if part is None or isinstance(part, Module) else Lambda(part)


def _place(owner: Any, index: Any) -> str:
    """The key of place `index`, which may be negative."""
    at = operator.index(index)
    if not -len(owner) <= at < len(owner):
        raise IndexError(
            f"{type(owner).__name__}: index {at} is out of range for {type(owner).__name__} of {len(owner)}; give 0 to {len(owner) - 1}"
        )
    return list(owner._modules)[at]


class _Row(Module):
    """What Sequential and ModuleList share: modules in a row, named by their numbers."""

    _convert: Callable[[Any], Any] = staticmethod(lambda part: part)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._like(list(self._modules.items())[index])
        return self._modules[_place(self, index)]

    def _like(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)([part for _, part in items])  # type: ignore[call-arg]

    def __setitem__(self, index: int, module: Any) -> None:
        setattr(self, _place(self, index), self._convert(module))

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._modules)
        for key in keys[index] if isinstance(index, slice) else [_place(self, index)]:
            del self._modules[key]
        self._renumber(list(self._modules.items()))

    def _renumber(self, items: list[tuple[str, Any]]) -> None:
        """Number the modules anew; names that a user gave stay."""
        self._modules.clear()
        for i, (name, module) in enumerate(items):
            self.add_module(str(i) if name.isdigit() else name, module)

    def append(self, module: Any) -> Any:
        """Add a module at the end; returns self."""
        self.add_module(str(len(self)), self._convert(module))
        return self

    def insert(self, index: int, module: Any) -> Any:
        """Put a module before place `index`; returns self."""
        items = list(self._modules.items())
        items.insert(operator.index(index), ("0", self._convert(module)))
        self._renumber(items)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        """Add several modules at the end; returns self."""
        if isinstance(modules, Tensor) or not isinstance(modules, Iterable):
            raise TypeError(f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, modules: Iterable[Any]) -> Any:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> Any:
        return self._like([*self._modules.items()]).extend(other)

    def pop(self, index: int) -> Any:
        """Take the module at `index` out and return it."""
        found = self[index]
        del self[index]
        return found

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(_Row):
    """Modules run one after the other: `Sequential(Linear(4, 8), ReLU())`, or of a dict with names.

    Plain functions may stand among them: `Sequential(Linear(2, 2), tritensor.tanh, lambda x: x * 2)`.
    """

    _convert = staticmethod(_as_module)

    def __init__(self, *parts: Any) -> None:
        super().__init__()
        named = parts[0].items() if len(parts) == 1 and isinstance(parts[0], Mapping) else ((str(i), p) for i, p in enumerate(parts))
        for name, part in named:
            self.add_module(name, _as_module(part))

    def _like(self, items: list[tuple[str, Any]]) -> Any:
        made = type(self)()
        made._renumber(items)
        return made

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Row):
    """A list of modules that the module holding it knows of."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __repr__(self) -> str:
        lines: list[str] = []
        shown = [repr(m) for m in self]
        start = 0
        for i in range(1, len(shown) + 1):  # equal neighbours share one line: (0-2): 3 x Linear(...)
            if i == len(shown) or shown[i] != shown[start]:
                text = f"({start}): {shown[start]}" if i - start == 1 else f"({start}-{i - 1}): {i - start} x {shown[start]}"
                lines.append(indented(text))
                start = i
        return self._get_name() + ("(\n  " + "\n  ".join(lines) + "\n)" if lines else "()")


class ModuleDict(Module):
    """A dictionary of modules that the module holding it knows of."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module | None) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Any:
        return self._modules.keys()

    def values(self) -> Any:
        return self._modules.values()

    def items(self) -> Any:
        return self._modules.items()

    def clear(self) -> None:
        self._modules.clear()

    def pop(self, key: str) -> Module:
        found = self[key]
        del self[key]
        return found

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules from a dict or from pairs of name and module."""
        for name, module in modules.items() if isinstance(modules, Mapping | ModuleDict) else modules:
            self[name] = module


def _as_parameter(value: Any) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if isinstance(value, Tensor):
        return Parameter(value.detach())
    raise TypeError(
        f"ParameterList: cannot assign '{type(value).__name__}' object to a list or dict of parameters (nn.Parameter or Tensor required)"
    )


def _shown(key: Any, param: Parameter) -> str:
    where = f" ({param.device})" if param.device.type == "cuda" else ""
    return f"  ({key}): Parameter containing: [{param.dtype} of size {'x'.join(map(str, param.shape))}{where}]"


class ParameterList(Module):
    """A list of parameters that the module holding it knows of; a plain tensor becomes a parameter."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._parameters[self._place(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        self._parameters[self._place(index)] = _as_parameter(value)

    def _place(self, index: int) -> str:
        at = operator.index(index)
        if not -len(self) <= at < len(self):
            raise IndexError(
                f"{type(self).__name__}: index {at} is out of range for {type(self).__name__} of {len(self)}; give 0 to {len(self) - 1}"
            )
        return str(at % len(self))

    def append(self, value: Any) -> Any:
        """Add a parameter at the end; returns self."""
        self.register_parameter(str(len(self)), _as_parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add several parameters at the end; returns self."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Any:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(_shown(k, p) for k, p in self._parameters.items())


class ParameterDict(Module):
    """A dictionary of parameters that the module holding it knows of; a plain tensor becomes a parameter."""

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.register_parameter(key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: str) -> bool:
        return key in self._parameters

    def keys(self) -> Any:
        return self._parameters.keys()

    def values(self) -> Any:
        return self._parameters.values()

    def items(self) -> Any:
        return self._parameters.items()

    def pop(self, key: str) -> Any:
        return self._parameters.pop(key)

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add parameters from a dict or from pairs of name and tensor."""
        for name, value in parameters.items() if isinstance(parameters, Mapping | ParameterDict) else parameters:
            self[name] = value

    def extra_repr(self) -> str:
        return "\n".join(_shown(k, p) for k, p in self._parameters.items())
