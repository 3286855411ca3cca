"""Choice of the modules that FullyShardedDataParallel wraps: PyTorch's policies, the walk that asks them, and `wrap` for modules named one by one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tritensor.nn import MultiheadAttention
from tritensor.nn.container import ModuleDict, ModuleList
from tritensor.nn.module import Module


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module."""
    return True


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = int(1e8), force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:  # fmt: skip
    """Modules of at least min_num_params elements that are in no wrapper below. Use functools.partial to give the number."""
    leaves = _FORCE_LEAVES if force_leaf_modules is None else force_leaf_modules
    excluded = _EXCLUDED if exclude_wrap_modules is None else exclude_wrap_modules
    is_large = nonwrapped_numel >= min_num_params
    if recurse:
        return is_large and not isinstance(module, tuple(leaves))
    return is_large and not isinstance(module, tuple(excluded))


_FORCE_LEAVES: set[type[Module]] = {MultiheadAttention}
_EXCLUDED: set[type[Module]] = {ModuleList, ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = _FORCE_LEAVES  # type: ignore[attr-defined]
size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = _EXCLUDED  # type: ignore[attr-defined]


def transformer_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]) -> bool:
    """Modules of the classes of a transformer's layers. Use functools.partial to give them."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]) -> bool:
    """Modules of which a function says so."""
    return recurse or bool(lambda_fn(module))


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., bool]]) -> bool:
    """Modules of which one of several policies says so."""
    return any([policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies])


_enabled: list[tuple[Callable[..., Module], dict[str, Any]]] = []  # by each `with enable_wrap` that is around: its wrapper and settings


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Callable[..., Module], **wrapper_kwargs: Any) -> Iterator[None]:
    """Inside, `wrap(module)` is `wrapper_cls(module, **wrapper_kwargs)`."""
    _enabled.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _enabled.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """The module in a wrapper of the innermost enable_wrap, whose settings those that are given here go before; outside of any the module itself."""
    if not _enabled:
        return module
    wrapper, settings = _enabled[-1]
    return wrapper(module, **{**settings, **wrap_overrides})


class ModuleWrapPolicy:
    """Modules of the given classes."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._classes = tuple(set(module_classes))

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._classes)

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({set(self._classes)})"


class CustomPolicy:
    """Modules of which a function says True, or gives settings of their own as a dict."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._asks = lambda_fn


def wrap_children(
    module: Module, policy: Any, ignored: set[Module], wrap: Callable[..., Module], known: dict[Module, tuple[Module, int]] | None = None
) -> int:  # fmt: skip
    """Wrap, innermost first, what the policy says below a module; returns how many elements of its parameters are in wrappers.

    `wrap(module, **settings)` makes a wrapper; `known` are the modules that were come to: a module that stands in several places has one wrapper.
    """
    in_wrappers, known = 0, {} if known is None else known
    for name, child in list(module._modules.items()):
        if child is None or child in ignored:
            continue
        # A module that stands in two places keeps one wrapper: two would shard its parameters twice.
        if child not in known:
            total = sum(p.numel() for p in child.parameters())  # before parts of it are shared out
            inside, settings = _ask_policy(child, total, policy, ignored, wrap, known)
            known[child] = (child, inside) if settings is None else (wrap(child, **settings), total)
        module._modules[name], inside = known[child]
        in_wrappers += inside
    return in_wrappers


def _ask_policy(
    child: Module, total: int, policy: Any, ignored: set[Module], wrap: Callable[..., Module], known: dict[Module, tuple[Module, int]]
) -> tuple[int, dict[str, Any] | None]:  # fmt: skip
    if isinstance(policy, CustomPolicy):
        inside = wrap_children(child, policy, ignored, wrap, known)
        said = policy._asks(child)
        return inside, said if isinstance(said, dict) else {} if said else None
    # PyTorch's protocol: the first question is whether to look below, the second whether to wrap.
    if not policy(module=child, recurse=True, nonwrapped_numel=total):
        return 0, None
    inside = wrap_children(child, policy, ignored, wrap, known)
    return inside, {} if policy(module=child, recurse=False, nonwrapped_numel=total - inside) else None
