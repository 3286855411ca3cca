"""torch._subclasses.fake_tensor: tensors that a tracer of PyTorch's passes through a program. None is ever made here, so that nothing is one."""

from __future__ import annotations

from typing import Any, NoReturn

_SAID = "nothing is traced by tensors without values of a device; device('meta') has tensors without memory"


class FakeTensor:
    """No tensor is one. Raises NotImplementedError when it is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"FakeTensor: not in tritensor: {_SAID}")


class FakeTensorMode:
    """Raises NotImplementedError when it is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"FakeTensorMode: not in tritensor: {_SAID}")


def is_fake(x: object) -> bool:
    """Whether a tensor is a FakeTensor: False."""
    return isinstance(x, FakeTensor)
