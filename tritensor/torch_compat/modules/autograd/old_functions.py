"""torch.autograd.function's classes of before there was `Function.apply`: bases that older scripts derive from."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.function import Function
from tritensor.ground.errors import GradError


class InplaceFunction(Function):
    """Function under the name of older scripts; `inplace` is kept, and a forward that writes says so by ctx.mark_dirty."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()  # which warns: Functions are not instantiated any more
        self.inplace = inplace


_RUNS_NO_MORE = (
    "{name}: a NestedIOFunction runs no more, in PyTorch neither; derive from Function, give apply the tensors themselves (utils._pytree.tree_flatten makes a "
    "flat list of a nested one), and make forward and backward static"
)


class NestedIOFunction(Function):
    """The base of Functions over nested lists that were called as objects: it can be derived from and asked for. Running one raises GradError."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise GradError(_RUNS_NO_MORE.format(name=type(self).__name__))

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        raise GradError(_RUNS_NO_MORE.format(name=cls.__name__))
