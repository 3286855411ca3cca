"""Overloads: PyTorch's names of ops, `ops.aten.mm.default`, to be compared, looked up in a table of handlers, and called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tritensor.dispatch import apply
from tritensor.ground.call_site import wrapper
from tritensor.ops.table import registry
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import namespaces, public
from tritensor.torch_dispatch import asking


class Overload:
    """One op by PyTorch's name, such as aten.add.Tensor: there is one object of each name. Called, it is tritensor's function of that name; inside a handler
    a call with a tensor of another class that dispatches, or under a mode, goes on to that one's handler."""

    def __init__(self, packet: Packet, overload: str) -> None:
        self.overloadpacket, self.namespace, self.packet_name, self.overload = packet, packet.namespace, packet.name, overload
        self.__name__, self.__qualname__, self.__module__ = (
            f"{packet.name}.{overload}",
            f"{packet}.{overload}",
            f"torch._ops.{packet.namespace}",
        )
        self._overloadname = overload
        self._function: Callable[..., Any] | None = None

    def name(self) -> str:
        """`aten::add.Tensor`; of the overload that is called default, `aten::relu`."""
        return f"{self.namespace}::{self.packet_name}" + (f".{self.overload}" if self.overload != "default" else "")

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self.overload}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.packet_name}', overload='{self.overload}')>"

    def __reduce__(self) -> Any:
        return _find, (self.namespace, self.packet_name, self.overload)

    def __copy__(self) -> Overload:
        return self

    def __deepcopy__(self, memo: Any) -> Overload:
        return self

    def find_function(self) -> Any:
        """tritensor's function of that name, or None."""
        if self._function is None:
            own = self.namespace == "tritensor"
            self._function = functools.partial(apply, registry[self.packet_name]) if own else _function_of(self.packet_name, self.overload)
        return self._function

    @wrapper
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.find_function()
        if function is None:
            raise NotImplementedError(f"ops.{self}: no function here has that name; call the one that PyTorch documents")
        if asking.setting.depth:
            return asking.ask(self, args, kwargs)
        return function(*args, **kwargs)


class Packet:
    """All overloads of a name: aten.mm."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace, self.name = namespace, name
        self.__name__, self._qualified_op_name = name, f"{namespace}::{name}"

    def __getattr__(self, overload: str) -> Overload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        made: Overload = self.__dict__.setdefault(overload, Overload(self, overload))  # one object, whoever asks first
        return made

    def overloads(self) -> list[str]:
        """The names of the overloads that were asked for."""
        return [name for name, value in vars(self).items() if isinstance(value, Overload)]

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.default(*args, **kwargs)


class Namespace:
    """PyTorch's ops by name. Any name is taken: what has no function here says so when it is called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Packet:
        if name.startswith("__"):
            raise AttributeError(name)
        made: Packet = self.__dict__.setdefault(name, Packet(self.__name__, name))
        return made


def _find(namespace: str, name: str, overload: str) -> Overload:
    return getattr(getattr(_spaces[namespace], name), overload)  # type: ignore[no-any-return]


def _function_of(name: str, overload: str) -> Any:
    from tritensor.nn import functional  # which, as the functions below, would load much
    from tritensor.torch_dispatch.functions import OWN

    own = OWN.get(f"{name}.{overload}") or OWN.get(name)
    return own or public.get(name) or vars(functional).get(name) or _method(name) or _of_namespace(name)


def _method(name: str) -> Any:
    found = getattr(Tensor, name, None) if not name.startswith("_") else None
    return found if callable(found) else None


def _of_namespace(name: str) -> Any:
    """`linalg_inv`, `fft_fft`, `special_i0e`: a function of a namespace."""
    space, _, rest = name.partition("_")
    return namespaces.get(space, {}).get(rest)


aten, tritensor = Namespace("aten"), Namespace("tritensor")
_spaces = {"aten": aten, "tritensor": tritensor}
