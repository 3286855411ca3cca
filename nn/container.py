"""Containers: Container, Sequential (of modules and plain functions), ModuleList, ModuleDict."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tritensor.nn.fusing import fused_activation_name
from tritensor.nn.module import Module, indent_lines
from tritensor.tensor.core import Tensor


class Lambda(Module):
    """A plain function as a module: what Sequential makes of one. It has no state and prints as the function's name.

    >>> double = nn.Lambda(lambda x: 2 * x)
    >>> double(tt.tensor([1.0, 2.0]))
    tensor([2., 4.])
    >>> nn.Sequential(nn.Linear(2, 1), nn.Lambda(tt.tanh))
    Sequential(
      (0): Linear(in_features=2, out_features=1, bias=True)
      (1): tanh
    )
    """

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
    # None keeps its name, and is skipped by walks, as in any Module
    return part if part is None or isinstance(part, Module) else Lambda(part)


def _key_at_index(owner: Any, index: Any) -> str:
    """The key of place `index`, which may be negative."""
    at = operator.index(index)
    if not -len(owner) <= at < len(owner):
        raise IndexError(
            f"{type(owner).__name__}: index {at} is out of range for {type(owner).__name__} of {len(owner)}; give 0 to {len(owner) - 1}"
        )
    return list(owner._modules)[at]


class Container(Module):
    """Modules by name, `Container(first=..., second=...)`: an old base; derive from Module."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn(
            "nn.Container is deprecated, as in PyTorch; nn.Module does all that it does: derive from that", FutureWarning, stacklevel=2
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class _NumberedModules(Module):
    """What Sequential and ModuleList share: modules in a row, named by their numbers."""

    _convert: Callable[[Any], Any] = staticmethod(lambda part: part)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._make_like(list(self._modules.items())[index])
        return self._modules[_key_at_index(self, index)]

    def _make_like(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)([part for _, part in items])  # type: ignore[call-arg]

    def __setitem__(self, index: int, module: Any) -> None:
        # by setattr, which refuses what is no module and runs registration hooks
        setattr(self, _key_at_index(self, index), self._convert(module))

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._modules)
        for key in keys[index] if isinstance(index, slice) else [_key_at_index(self, index)]:
            del self._modules[key]
        self._renumber([(str(i), part) for i, part in enumerate(self)])  # names that a user gave go, as in PyTorch

    def _renumber(self, items: list[tuple[str, Any]]) -> None:
        self._modules.clear()
        for i, (name, module) in enumerate(items):
            self.add_module(str(i) if name.isdigit() else name, module)  # names that a user gave stay

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
        for module in list(modules):  # a copy: `layers.extend(layers)` would not end
            self.append(module)
        return self

    def __iadd__(self, modules: Iterable[Any]) -> Any:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> Any:
        return self._make_like([*self._modules.items()]).extend(other)

    def pop(self, key: int | slice) -> Any:
        """Take the module at a place, or those of a slice, out and return them."""
        found = self[key]
        del self[key]
        return found

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]  # '0' is no attribute that anyone can write


class Sequential(_NumberedModules):
    """Modules run one after the other: `Sequential(Linear(4, 8), ReLU())`, or of a dict with names.

    Plain functions may stand among them: `Sequential(Linear(2, 2), tritensor.tanh, lambda x: x * 2)`.

    >>> net = nn.Sequential(nn.Linear(2, 4), tt.tanh, nn.Linear(4, 1))
    >>> net(tt.zeros(3, 2)).shape
    tritensor.Size([3, 1])
    >>> net[0].weight.shape
    tritensor.Size([4, 2])
    """

    _convert = staticmethod(_as_module)

    def __init__(self, *parts: Any) -> None:
        super().__init__()
        # one dict gives the names, as PyTorch's OrderedDict does
        named = parts[0].items() if len(parts) == 1 and isinstance(parts[0], Mapping) else ((str(i), p) for i, p in enumerate(parts))
        for name, part in named:
            self.add_module(name, _as_module(part))

    def _make_like(self, items: list[tuple[str, Any]]) -> Any:
        made = type(self)()
        for name, part in items:  # under the names that they have here
            made.add_module(name, part)
        return made

    def extend(self, sequential: Iterable[Any]) -> Any:
        """Add several modules at the end; returns self."""
        return super().extend(sequential)

    def __add__(self, other: Iterable[Any]) -> Any:
        return Sequential().extend(self).extend(other)  # a plain one: a subclass's constructor may want other arguments

    def insert(self, index: int, module: Any) -> Any:
        """Put a module before place `index`; returns self. Raises IndexError for a place that is not there."""
        at = operator.index(index)
        if not -len(self) <= at <= len(self):
            raise IndexError(f"Sequential.insert: Index out of range: {at}; give {-len(self)} to {len(self)}")
        return super().insert(at, module)

    def _check_factor(self, count: Any) -> int:
        if not isinstance(count, int):
            raise TypeError(f"Sequential: unsupported operand type(s) for *: {type(self).__name__} and {type(count).__name__}; give an int")
        if count <= 0:
            raise ValueError(f"Sequential: Non-positive multiplication factor {count}; give at least 1")
        return count

    def __mul__(self, count: int) -> Any:
        """The same modules again and again, `count` times: they share their parameters."""
        made = Sequential()
        for _ in range(self._check_factor(count)):
            made.extend(self)
        return made

    __rmul__ = __mul__

    def __imul__(self, count: int) -> Any:
        # a copy, since the module grows while it is read
        own = list(self)
        for _ in range(self._check_factor(count) - 1):
            self.extend(own)
        return self

    def forward(self, input: Any) -> Any:
        # only a GPU gains: there the result of the first layer would go through memory
        if isinstance(input, Tensor) and input.is_cuda:
            return _run_fused([*self._modules.values()], input)
        for module in self._modules.values():
            input = module(input)
        return input


def _run_fused(parts: list[Any], input: Any) -> Any:
    """The modules one after the other; a Linear or a convolution and the activation behind it are one kernel, unless somebody wants to see what is
    between them."""
    at = 0
    while at < len(parts):
        name = fused_activation_name(parts[at], parts[at + 1], input) if at + 1 < len(parts) else ""
        input = parts[at]._forward_with_activation(input, name) if name else parts[at](input)
        at += 2 if name else 1
    return input


class ModuleList(_NumberedModules):
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
                lines.append(indent_lines(text))
                start = i
        return self._get_name() + ("(\n  " + "\n  ".join(lines) + "\n)" if lines else "()")


def check_pairs(name: str, given: Any) -> Iterator[tuple[str, Any]]:
    """(key, value) of what `update` is given beside a dict. Raises TypeError for what holds no pairs, ValueError for one of another length."""
    if not isinstance(given, Iterable):
        raise TypeError(f"{name}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}")
    for i, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name}: update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        found = tuple(pair)  # a pair may be a list, or a string of two letters
        if len(found) != 2:
            raise ValueError(f"{name}: update sequence element #{i} has length {len(found)}; 2 is required")
        yield found[0], found[1]


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
        """The names, in order."""
        return self._modules.keys()

    def values(self) -> Any:
        """The modules, in order."""
        return self._modules.values()

    def items(self) -> Any:
        """(name, module) pairs, in order."""
        return self._modules.items()

    def clear(self) -> None:
        """Take every module out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take the module of a name out and return it. Raises KeyError where there is none."""
        found = self[key]
        del self[key]
        return found

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules from a dict or from pairs of name and module."""
        # a ModuleDict is no Mapping, and has items()
        for name, module in modules.items() if isinstance(modules, Mapping | ModuleDict) else check_pairs("ModuleDict", modules):
            self[name] = module
