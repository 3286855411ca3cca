"""ParameterList and ParameterDict: parameters, and other values beside them, under numbers or names."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tritensor.nn.container import check_pairs
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter
from tritensor.tensor.core import Tensor


class MissingKeyError(KeyError, AttributeError):
    """A key that a ParameterDict has not: PyTorch raises AttributeError, a dict KeyError."""


def _as_parameter(value: Any) -> Any:
    """A plain tensor as a parameter on its memory, everything else as it is."""
    return Parameter(value.detach()) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class _ValueContainer(Module):
    """Values as attributes of the module: parameters among them are found by parameters() and state_dict()."""

    def _entries(self) -> Iterable[tuple[Any, Any]]:
        raise NotImplementedError

    def _kind(self, value: Tensor) -> str:
        return str(value.dtype)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # in place of forward's message, which would ask for a forward
        raise RuntimeError(f"{type(self).__name__} should not be called; take its parameters out of it")

    def extra_repr(self) -> str:
        lines = []
        for key, value in self._entries():
            shown = f"Object of type: {type(value).__name__}"
            if isinstance(value, Tensor):
                where = f" ({value.device})" if value.device.type == "cuda" else ""
                what = "Parameter" if isinstance(value, Parameter) else "Tensor"
                shown = f"{what} containing: [{self._kind(value)} of size {'x'.join(map(str, value.shape))}{where}]"
            lines.append(f"  ({key}): {shown}")
        return "\n".join(lines)


class ParameterList(_ValueContainer):
    """A list of parameters that the module holding it knows of; a plain tensor becomes a parameter, other values stay as they are."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _attribute_name(self, index: Any) -> str:
        at = operator.index(index)
        if not -self._size <= at < self._size:
            raise IndexError(
                f"{type(self).__name__}: index {at} is out of range for {type(self).__name__} of {self._size}; give 0 to {self._size - 1}"
            )
        return str(at % self._size)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(i)) for i in range(self._size))  # by attributes: values that are no parameters stand in no table

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._attribute_name(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._attribute_name(index), _as_parameter(value))

    def append(self, value: Any) -> Any:
        """Add a value at the end; returns self."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add several values at the end; returns self."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):  # a copy: `params.extend(params)` would not end
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Any:
        return self.extend(values)

    def _entries(self) -> Iterable[tuple[Any, Any]]:
        return enumerate(self)


class ParameterDict(_ValueContainer):
    """A dictionary of parameters that the module holding it knows of; a plain tensor becomes a parameter, other values stay as they are.

    As in PyTorch a plain dict is taken in the order of its keys, an OrderedDict and pairs in their own.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}  # a dict for a set in order
        if parameters is not None:
            self.update(parameters)

    def _kind(self, value: Tensor) -> str:
        return str(value.type())

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise MissingKeyError(f"ParameterDict has no key {key!r}; there are {', '.join(map(repr, self._keys)) or 'none'}")
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(
                f"ParameterDict: index given cannot be used as a key as it is not a string (type is '{type(key).__name__}'); give a str"
            )
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Any:
        """The names, in order."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The values, in order."""
        return (self[k] for k in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, value) pairs, in order."""
        return ((k, self[k]) for k in self._keys)

    def _entries(self) -> Iterable[tuple[Any, Any]]:
        return self.items()

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return type(self)(OrderedDict(self.items()))

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, `default` where there is none."""
        return getattr(self, key) if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which is made `default` where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take a key out; returns its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last (key, value) out."""
        if not self._keys:
            raise KeyError("popitem: the ParameterDict is empty; it has nothing to give")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Take everything out."""
        for key in list(self._keys):
            del self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dictionary of these keys, each with `default`."""
        return ParameterDict((k, default) for k in keys)

    def update(self, parameters: Any) -> None:
        """Add values from a dict or from pairs of key and value."""
        if isinstance(parameters, OrderedDict | ParameterDict):
            given = parameters.items()
        elif isinstance(parameters, Mapping):
            given = sorted(parameters.items())  # PyTorch's rule of before dicts had an order; state dicts are laid out by it
        else:
            given = check_pairs("ParameterDict", parameters)
        for key, value in list(given):  # a copy: it may be this very dictionary
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> ParameterDict:
        made = ParameterDict(other)  # the other's keys come first, as in dict
        made.update(self)
        return made

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]  # in place, as dict has it
        self.update(other)
        return self
