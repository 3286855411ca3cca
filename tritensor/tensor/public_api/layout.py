"""Values of `layout=`: strided, which every tensor is, and PyTorch's others by their names."""

from __future__ import annotations

from typing import Any

from tritensor.ground.call_site import qualified_name
from tritensor.ground.naming.type_names import named, own_constant
from tritensor.tensor.core import Tensor


@named("torch")
class layout:
    """The way a tensor's elements are stored. Every tensor is `tritensor.strided`; the others are names to compare with, and making a tensor of
    theirs raises NotImplementedError."""

    __slots__ = ("name",)

    name: str

    def __init__(self) -> None:
        raise TypeError(f"layout: there are no others than {', '.join(repr(known) for known in LAYOUTS.values())}")

    def __repr__(self) -> str:
        return qualified_name(self.name)

    def __reduce__(self) -> Any:
        return own_constant(layout, self.name)


def _make(name: str) -> layout:
    made = layout.__new__(layout)  # without __init__, which refuses
    made.name = name
    return made


strided = _make("strided")
sparse_coo = _make("sparse_coo")
sparse_csr = _make("sparse_csr")
sparse_csc = _make("sparse_csc")
sparse_bsr = _make("sparse_bsr")
sparse_bsc = _make("sparse_bsc")
jagged = _make("jagged")
_mkldnn = _make("_mkldnn")
LAYOUTS = {known.name: known for known in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged, _mkldnn)}


def check_layout(name: str, given: Any) -> None:
    """Refuse a layout that is not strided."""
    if given is strided:
        return
    if isinstance(given, layout):
        raise NotImplementedError(
            f"{name}: tensors of layout {given!r} are not built here; leave layout out, {strided!r} keeps every element"
        )
    raise TypeError(f"{name}: layout is {given!r}; tritensor.strided is the only layout, leave it out or give that")


def _get_layout(x: Tensor) -> layout:
    """Always `tritensor.strided`."""
    return strided


Tensor.layout = property(_get_layout)  # type: ignore[assignment, method-assign]
