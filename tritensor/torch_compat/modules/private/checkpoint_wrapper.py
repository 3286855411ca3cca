"""torch.distributed.algorithms._checkpoint.checkpoint_wrapper: modules whose forward is checkpointed, wrapped one by one or by a policy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from tritensor.autograd.graph import save_on_cpu
from tritensor.cuda import is_available
from tritensor.distributed.fsdp.wrap import lambda_auto_wrap_policy, wrap_children
from tritensor.distributed.fsdp.wrappers import _CHECKPOINT_PREFIX as _CHECKPOINT_PREFIX
from tritensor.distributed.fsdp.wrappers import _CHECKPOINT_WRAPPED_MODULE as _CHECKPOINT_WRAPPED_MODULE
from tritensor.distributed.fsdp.wrappers import ActivationWrapper as ActivationWrapper
from tritensor.nn.module import Module
from tritensor.utils.checkpoint import checkpoint


class CheckpointImpl(Enum):
    """Which form of utils.checkpoint.checkpoint a wrapper uses."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class CheckpointWrapper(ActivationWrapper):
    """Forward of the module inside keeps its inputs alone, and runs again in backward.

    Args:
        checkpoint_impl: NO_REENTRANT or REENTRANT, whose forward may have keyword arguments here.
        checkpoint_fn: called as `checkpoint_fn(module, *args, **kwargs)` in place of utils.checkpoint.checkpoint.
        checkpoint_fn_kwargs: more keywords for the function.
    """

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT, checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        reenters = checkpoint_impl is CheckpointImpl.REENTRANT
        settings: Any = {"use_reentrant": reenters} if checkpoint_fn is None else {}
        self.checkpoint_fn = functools.partial(checkpoint_fn or checkpoint, **settings, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        module = self.module
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:  # the newer form takes keywords as they are
            return self.checkpoint_fn(module, *args, **kwargs)
        names, count = list(kwargs), len(args)  # the old form passes arguments by their places alone

        def by_places(*values: Any) -> Any:
            return module(*values[:count], **dict(zip(names, values[count:], strict=True)))

        return self.checkpoint_fn(by_places, *args, *kwargs.values())


class OffloadWrapper(ActivationWrapper):
    """What forward of the module inside keeps for backward lies in the CPU's memory until then."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=is_available()):
            return self.module(*args, **kwargs)


def offload_wrapper(module: Module) -> Module:
    """The module in an OffloadWrapper."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT, checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:  # fmt: skip
    """The module in a CheckpointWrapper."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def _every(module: Module) -> bool:
    return True


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable[..., Module] = checkpoint_wrapper, check_fn: Callable[[Module], bool] = _every,
    auto_wrap_policy: Any = None,
) -> None:  # fmt: skip
    """Wrap, in place, the modules below a model of which check_fn, or a policy of fsdp.wrap, says so."""
    policy = auto_wrap_policy or functools.partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    wrap_children(model, policy, set(), checkpoint_wrapper_fn)
