"""Parametrizations: a parameter or buffer of a module becomes a function of others, computed whenever it is read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.ground.errors import ArgumentError
from tritensor.ground.process import locks
from tritensor.nn.container import ModuleDict, ModuleList
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter
from tritensor.tensor.core import Tensor

_counting = locks.lock()
_cache_enabled = 0  # counted, since blocks may nest and threads may be inside several at once
_cache: dict[tuple[int, str], Any] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Inside, every parametrized tensor is computed once, when it is first read."""
    global _cache_enabled
    with _counting:
        _cache_enabled += 1
    try:
        yield
    finally:
        with _counting:
            _cache_enabled -= 1
            if not _cache_enabled:  # the last block that ends empties it: the values belong to the parameters of then
                _cache.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    """As a parameter where it is one, else as a buffer."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _overwrite(tensor: Tensor, value: Tensor) -> None:
    """The value into a tensor that stays the same object, of which an optimizer knows."""
    tensor.data = value.detach()  # outside the graph: the original is a leaf


def _refuse_other(what: str, given: Tensor, wanted: Tensor) -> None:
    """Raise ArgumentError where a value has another type or shape than the tensor that it stands for."""
    for aspect in ("dtype", "shape"):
        have, want = getattr(given, aspect), getattr(wanted, aspect)
        if have != want:
            raise ArgumentError(
                f"register_parametrization: {what} may not change the {aspect} of the tensor: it is {want}, and becomes {have}; mend the "
                "parametrization, or register it with unsafe=True"
            )


def _require_tensor(what: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise ArgumentError(f"register_parametrization: {what} must return a tensor, not a {type(value).__name__}")
    return value


def _invert(parametrization: Module, value: Any) -> Any:
    """right_inverse of a value; the value itself where there is none."""
    inverse = getattr(parametrization, "right_inverse", None)
    if inverse is None:
        return value
    try:
        return inverse(value)
    except NotImplementedError:  # a base class may have the method and say that it is not there
        return value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, the first to be applied first, and what the first is applied to: `original`, or `original0`,
    `original1`, ... where its right_inverse gives several. Made by register_parametrization."""

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not len(modules):
            raise ArgumentError("ParametrizationList requires one or more modules; give a parametrization")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            before = original.detach()
            new: Any = original
            for module in reversed(list(self)):
                new = _invert(module, new)
        if not isinstance(new, Tensor | Sequence):
            raise ArgumentError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...), not a {type(new).__name__}; mend it"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            self._register_one(original, new)
        else:
            for i, value in enumerate(new):
                self._register_part(i, value, original)
        if not unsafe:
            _refuse_other("a parametrization", _require_tensor("a parametrization", self()), before)

    def _register_one(self, original: Tensor, new: Tensor) -> None:
        for aspect in ("dtype", "device"):
            if getattr(original, aspect) != getattr(new, aspect):
                raise ArgumentError(
                    f"When `right_inverse` outputs one tensor, it may not change the {aspect}: original is {getattr(original, aspect)}, "
                    f"right_inverse(original) {getattr(new, aspect)}; give a tensor of the same"
                )
        _overwrite(original, new)
        _register(self, "original", original)

    def _register_part(self, i: int, value: Any, original: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...); element {i} of it is a {type(value).__name__}"
            )
        part = Parameter(value.detach(), original.requires_grad) if isinstance(original, Parameter) else value
        part.requires_grad_(original.requires_grad)  # a new tensor, which a frozen original must not make trainable
        _register(self, f"original{i}", part)

    def _originals(self) -> list[Tensor]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Let the originals be such that the parametrized tensor is `value`, as the parametrizations' right_inverse say."""
        with no_grad():
            found: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse; define it, to assign a value"
                    )
                found = module.right_inverse(found)
        kind = Tensor if self.is_tensor else Sequence
        if not isinstance(found, kind):
            raise ArgumentError(
                f"`right_inverse` should return a {'tensor' if self.is_tensor else 'sequence of tensors'}, not a {type(found).__name__}"
            )
        values: list[Any] = [found] if self.is_tensor else list(found)
        originals = self._originals()
        if len(values) != self.ntensors:
            raise ArgumentError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}, not {len(values)}")
        for i, (tensor, original) in enumerate(zip(values, originals, strict=True)):
            if not isinstance(tensor, Tensor) or tensor.dtype != original.dtype:
                given = f"dtype {tensor.dtype}" if isinstance(tensor, Tensor) else f"type {type(tensor).__name__}"
                raise ArgumentError(
                    f"Tensor {i} returned by `right_inverse` has {given} while the original has dtype {original.dtype}; cast it"
                )
        for tensor, original in zip(values, originals, strict=True):  # a second loop: a wrong tensor leaves all originals as they were
            _overwrite(original, tensor)

    def forward(self) -> Tensor:
        first, *rest = self  # several originals go to the first alone, which made them
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        return x  # type: ignore[no-any-return]


# The class of a parametrized module: its own with a property for each parametrized tensor.
def _refuse_pickle(self: Any) -> Any:
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict(); save that")


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """A copy with a class of its own, so that parametrizations of the one can be removed without the other's."""
    if id(self) not in memo:
        # not by __init__, which would want the layer's arguments
        replica = self.__new__(_derive_class(type(self).__bases__[0], list(self._modules["parametrizations"])))
        memo[id(self)] = replica  # before its contents: they may refer back to the module
        replica.__dict__.update(deepcopy(self.__dict__, memo))
    return memo[id(self)]


def _make_property(name: str) -> property:
    def read(self: Any) -> Any:
        if not _cache_enabled:
            return self.parametrizations[name]()
        key = (id(self), name)  # by identity: the modules of a block outlive it
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def _derive_class(cls: type, names: Sequence[str]) -> type:
    # the derived class has no name that a pickle could find it by
    fields: dict[str, Any] = {"__getstate__": _refuse_pickle, **{name: _make_property(name) for name in names}}
    if not hasattr(cls, "__deepcopy__"):  # a class that copies itself in its own way goes on to do so
        fields["__deepcopy__"] = _deepcopy
    return type(f"Parametrized{cls.__name__}", (cls,), fields)


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Let module's parameter or buffer `tensor_name` be parametrization(original), computed whenever it is read; after what is registered already.

    The original is `module.parametrizations.<tensor_name>.original`: the tensor itself, or right_inverse of it where the parametrization has that
    method; it may give several tensors, `original0` and so on. With it, values can be assigned to the tensor.

    Args:
        unsafe: let the parametrization change type and shape; nothing is tried then.

    Raises:
        ValueError: no such tensor, one that is None, or a parametrization that changes its type or shape.
    """
    parametrization.train(module.training)  # a spectral norm, say, iterates in training alone, and is made in training mode
    if is_parametrized(module, tensor_name):
        listed: Any = module.parametrizations[tensor_name]
        if not unsafe:
            _check_parametrization(module, tensor_name, parametrization)
        listed.append(parametrization)
        listed.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        if getattr(module, tensor_name) is None:
            raise ArgumentError(
                f"register_parametrization: {type(module).__name__} was made without a {tensor_name}: it is None; make it with one, or name another"
            )
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)  # else it would be a parameter of the module beside its original
        if not is_parametrized(module):
            # a class for this module alone: a property on the layer's own class would be every layer's
            module.__class__ = _derive_class(type(module), ())
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _make_property(tensor_name))
        module.parametrizations[tensor_name] = made  # type: ignore[index, operator]
    else:
        raise ArgumentError(
            f"register_parametrization: {type(module).__name__} does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'; it has {', '.join([*module._parameters, *module._buffers]) or 'none'}"
        )
    return module


def _check_parametrization(module: Module, name: str, parametrization: Module) -> None:
    """Raise where another parametrization of a tensor gives something else than it gets."""
    now = getattr(module, name)
    value = _require_tensor("a parametrization", parametrization(now))
    _refuse_other("a parametrization", value, now)
    if hasattr(parametrization, "right_inverse"):
        with contextlib.suppress(NotImplementedError):
            _refuse_other("right_inverse", _require_tensor("right_inverse", parametrization.right_inverse(value)), now)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the tensor of that name, or without a name any tensor of the module, is parametrized."""
    listed = getattr(module, "parametrizations", None)
    if not isinstance(listed, ModuleDict):  # a module of the user's may have an attribute of that name
        return False
    return len(listed) > 0 if tensor_name is None else tensor_name in listed


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor a parameter or buffer again: of the value that it has, or with leave_parametrized=False the original.

    The tensor is the original, where there is one, so that an optimizer goes on with it. Raises ValueError where it is not parametrized, and for
    leave_parametrized=False where there are several originals.
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(
            f"remove_parametrizations: {type(module).__name__} does not have a parametrization on {tensor_name}; name a tensor that has"
        )
    listed: Any = module.parametrizations[tensor_name]  # type: ignore[index, operator]
    if listed.is_tensor:
        original = listed.original
        if leave_parametrized:
            with no_grad():
                _overwrite(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        # no tensor of old stands for the whole: an optimizer has to be told of this one
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ArgumentError(
            "remove_parametrizations: Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence "
            "of tensors; call it with leave_parametrized=True"
        )
    delattr(type(module), tensor_name)  # the property goes first: register_parameter refuses a name that is taken
    del module.parametrizations[tensor_name]  # type: ignore[operator]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]  # nothing is parametrized any more: the module is picklable again
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before it was parametrized; its class, if it is not."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Module:
    """Parametrize to_module's tensors, or the one named, by the parametrizations of from_module, and give them its originals' values."""
    if not is_parametrized(from_module):
        return to_module
    source: Any = from_module.parametrizations
    for name in list(source) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            to_module.register_parameter(name, Parameter(getattr(from_module, name).detach()))
        for parametrization in source[name]:
            register_parametrization(to_module, name, parametrization)  # shared, not copied, as in PyTorch
        made: Any = to_module.parametrizations[name]  # type: ignore[index, operator]
        for field in ["original"] if source[name].is_tensor else [f"original{i}" for i in range(source[name].ntensors)]:
            setattr(made, field, getattr(source[name], field))
    return to_module
