"""LazyModuleMixin: layers that learn the shape of their parameters from the first batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.nn import hooks
from tritensor.nn.parameter import is_lazy


class LazyModuleMixin:
    """Beside a Module class: its uninitialized parameters get their shapes in the first call, and the module becomes a `cls_to_become`.

    A subclass makes UninitializedParameters in `__init__`, and in `initialize_parameters(*inputs)`, called with what forward is called with,
    materializes and initialises them. A state_dict of a module that has run may be loaded into one that has not.
    """

    cls_to_become: Any = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # before the module's own loading, which would refuse what has no shape
        self._load_hook = hooks.add(self, "load_pre", (self._lazy_load_hook, False))
        self._initialize_hook = hooks.add(self, "forward_pre", (self._infer_parameters, True, False))

    def _members(self) -> Iterator[tuple[str, Any]]:
        yield from self._parameters.items()
        yield from self._buffers.items()

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the uninitialized parameters their shapes and values; called with the first inputs of forward."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}; define it in the class")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer still waits for its shape."""
        return any(is_lazy(member) for _, member in self._members())

    def _infer_parameters(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            waiting = ", ".join(name for name, member in module._members() if is_lazy(member))
            raise RuntimeError(
                f"module {type(self).__name__} has not been fully initialized: {waiting} still without a shape; materialize it in "
                "initialize_parameters"
            )
        module._initialize_hook.remove()  # removed when all went well: after an error the next call tries again
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become  # the same object: optimizers and parents go on holding it

    def _lazy_load_hook(self, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        """Members that are to be loaded get the shapes of what is loaded into them."""
        for name, member in self._members():
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(member) and not is_lazy(given):  # two lazy ones have nothing to tell each other
                with no_grad():
                    member.materialize(given.shape)

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError("Modules with uninitialized parameters can't be used with DataParallel; call forward with a batch first")
