"""torch.export.Dim: names of sizes that vary, as onnx.export's dynamic_shapes takes them."""

from __future__ import annotations


class _Hint:
    """A size without a name of its own."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"Dim.{self.__name__}"


class Dim:
    """A size that may vary, under a name: axes of one name are of one size. min and max are remembered, and nothing is refused by them.

    AUTO and DYNAMIC stand for a size without a name, STATIC for one that is the sample's.
    """

    AUTO, DYNAMIC, STATIC = _Hint("AUTO"), _Hint("DYNAMIC"), _Hint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"Dim: the name {name!r} is no identifier; give one such as 'batch'")
        if min is not None and max is not None and max <= min:  # refused although nobody checks sizes by it: PyTorch refuses it
            raise ValueError(f"Dim: {name}: max {max} is not above min {min}")
        self.__name__, self.min, self.max = name, min, max

    def __repr__(self) -> str:
        return f"Dim({self.__name__!r})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """A Dim for each name."""
    return tuple([Dim(name, min=min, max=max) for name in names])
