"""PyTorch's names of ops, `ops.aten.mm.default`: to be compared, and called by tritensor's function of that name."""

from __future__ import annotations

from typing import Any

from tritensor.tensor.public_api.publish import namespaces, public


class Overload:
    """One op by PyTorch's name, such as aten.mm.default. All overloads of a name are equal: an op here has one form."""

    __slots__ = ("name", "overload")

    def __init__(self, name: str, overload: str = "default") -> None:
        self.name, self.overload = name, overload

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Overload) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return f"aten.{self.name}.{self.overload}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.name}', overload='{self.overload}')>"

    def find_function(self) -> Any:
        """tritensor's function of that name, or None."""
        return public.get(self.name) or namespaces.get("nn.functional", {}).get(self.name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.find_function()
        if function is None:
            raise NotImplementedError(f"ops.aten.{self.name}: no function here has that name; call the one that PyTorch documents")
        return function(*args, **kwargs)


class Packet:
    """All overloads of a name: aten.mm."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, overload: str) -> Overload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return Overload(self._name, overload)

    def __str__(self) -> str:
        return f"aten.{self._name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Overload(self._name)(*args, **kwargs)


class Aten:
    """PyTorch's ops by name. Any name is accepted; `create_selective_checkpoint_contexts` says which run."""

    def __getattr__(self, name: str) -> Packet:
        if name.startswith("__"):
            raise AttributeError(name)
        return Packet(name)


aten = Aten()
