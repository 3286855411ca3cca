"""Pruning: elements of a parameter are masked by 0; the rest is learned on. The parameter becomes `<name>_orig`, the mask a buffer `<name>_mask`."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from tritensor.ground.errors import ArgumentError, OutOfRangeError, ShapeError
from tritensor.nn.hooks import list_pre_hooks, remove_pre_hook
from tritensor.nn.module import Module
from tritensor.nn.utils.convert_parameters import parameters_to_vector
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.constructors import ones_like
from tritensor.tensor.functions.creation.random import rand


class BasePruningMethod(ABC):
    """A way to choose what is pruned, and the hook that masks the tensor before each forward. A subclass defines compute_mask, and PRUNING_TYPE:
    "unstructured" (single elements), "structured" (slices along `dim`) or "global" (it looks at the whole tensor)."""

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor (or of its importance scores): what is 0 in default_mask stays 0."""

    def apply_mask(self, module: Module) -> Tensor:
        """The original times its mask."""
        mask, original = (getattr(module, self._tensor_name + part) for part in ("_mask", "_orig"))
        return mask.to(original.dtype) * original  # type: ignore[no-any-return]

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any) -> Any:
        """Prune a parameter of a module by cls(*args, **kwargs), on top of what prunes it already. `importance_scores`, of the parameter's shape,
        say what to keep in its place."""
        original = getattr(module, name)
        _refuse_scores(importance_scores, original, f"parameter {name} of {type(module).__name__}")
        method, old = _combine_methods(cls(*args, **kwargs), module, name)
        scores = original if importance_scores is None else importance_scores  # by itself, the size of an element is its importance
        mask = method.compute_mask(
            scores.detach(), getattr(module, name + "_mask").detach().clone() if old is not None else ones_like(original)
        )
        if old is not None:
            remove_pre_hook(module, old)
        else:
            del module._parameters[name]  # the name becomes a plain attribute's, which the hook computes
            module.register_parameter(name + "_orig", original)
        module.register_buffer(name + "_mask", mask)
        # a plain attribute, which the hook below computes anew before each forward
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)  # before each forward anew: an optimizer moves the original
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A tensor pruned by this method, by itself."""
        _refuse_scores(importance_scores, t, "tensor t")
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor the parameter again, for good."""
        name = self._tensor_name
        weight = self.apply_mask(module).detach()
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        # the same object, of which an optimizer knows
        original.data = weight
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _refuse_scores(scores: Tensor | None, of: Tensor, what: str) -> None:
    if scores is not None and tuple(scores.shape) != tuple(of.shape):
        raise PruningShapeError(f"importance_scores should have the same shape as {what}, got {tuple(scores.shape)} vs {tuple(of.shape)}")


class PruningShapeError(AssertionError, ShapeError):
    """A mask or scores of another shape than what they are for."""


def _combine_methods(made: BasePruningMethod, module: Module, name: str) -> tuple[BasePruningMethod, int | None]:
    """The method, after those that prune the tensor already, and the key of their hook."""
    made._tensor_name = name
    for key, hook in list_pre_hooks(module, BasePruningMethod):
        if hook._tensor_name == name:
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(made)
            return container, key
    return made, None


class PruningContainer(BasePruningMethod):
    """Pruning methods of one tensor, one after the other: the last chooses among what the others left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Put a method behind the others. Raises ValueError for one of another tensor."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method).__name__} is not a BasePruningMethod subclass; give a pruning method")
        if method._tensor_name != self._tensor_name:
            raise ArgumentError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to this PruningContainer; this one's is "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)  # a tuple, as PyTorch keeps it

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """default_mask with what the last method takes out of that which is left: elements, or whole slices."""
        method = self._pruning_methods[-1]  # the others have had their turn: default_mask is what they left
        if method.PRUNING_TYPE == "unstructured":
            left: Any = default_mask == 1  # elements that are gone must not be counted among the smallest again
        elif method.PRUNING_TYPE == "structured":
            dim = _dim(t, method.dim)  # type: ignore[attr-defined]
            # slices that are gone already would otherwise be the smallest, and pruned a second time
            others = tuple(d for d in range(t.ndim) if d != dim)
            left = (slice(None),) * dim + (default_mask.sum(dim=others) != 0,)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.ndim  # a global method has seen all elements, the masked ones too
        else:
            raise ArgumentError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE!r}; it is 'unstructured', 'structured' or 'global'")
        mask = default_mask.to(t.dtype)
        # the caller's mask is not written into
        mask = mask.clone() if mask is default_mask else mask
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing: a parameter with a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Amount(BasePruningMethod):
    """Prunes so many: a number, or a fraction of all."""

    def __init__(self, amount: float) -> None:
        given: Any = amount
        if not isinstance(given, numbers.Real):
            raise TypeError(f"Invalid type for amount: {amount!r}. Must be int or float.")
        whole = isinstance(given, numbers.Integral)  # an int is a number of elements, 1.0 all of them
        if float(amount) < 0 or (not whole and float(amount) > 1):
            raise ArgumentError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount: Any = amount

    def _count(self, size: int) -> int:
        """How many of `size`."""
        if not isinstance(self.amount, numbers.Integral):
            return round(self.amount * size)  # Python's rounding to even, as PyTorch's
        if int(self.amount) > size:
            raise ArgumentError(f"amount={self.amount} should be smaller than the number of parameters to prune={size}")
        return int(self.amount)

    def _mask_smallest(self, size: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without its `_count` elements of smallest size."""
        count = self._count(size.numel())
        mask = default_mask.clone()  # the caller's mask is not written into
        if count:
            mask.view(-1)[size.reshape(-1).topk(count, largest=False)[1]] = 0
        return mask

    def _mask_smallest_slices(self, size: Tensor, dim: int, default_mask: Tensor) -> Tensor:
        """The mask without its `_count` slices along dim of smallest size."""
        count = self._count(size.numel())
        if not count:
            return default_mask
        kept = ones_like(size)
        kept[size.topk(count, largest=False)[1]] = 0
        shape = [1] * default_mask.ndim
        shape[dim] = -1  # broadcast over the other dims: a slice is kept or goes as a whole
        return default_mask * kept.to(default_mask.dtype).reshape(shape)


def _dim(t: Tensor, dim: int) -> int:
    """A dim of a tensor of several, counted from the front."""
    if t.ndim <= 1:
        raise ShapeError(
            f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {tuple(t.shape)} with {t.ndim} dims"
        )
    if not -t.ndim <= dim < t.ndim:
        raise OutOfRangeError(f"Invalid index {dim} for tensor of size {tuple(t.shape)}; it has dims {-t.ndim} to {t.ndim - 1}")
    return dim % t.ndim


class RandomUnstructured(_Amount):
    """Prunes elements drawn at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        # the smallest of random numbers are a draw without repetition
        return self._mask_smallest(rand(t.numel(), device=t.device), default_mask)

    @classmethod
    def apply(cls, module: Module, name: str, amount: float) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Amount):
    """Prunes the elements of smallest size."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return self._mask_smallest(t.abs(), default_mask)

    @classmethod
    def apply(cls, module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(_Amount):
    """Prunes slices along a dim drawn at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        dim = _dim(t, self.dim)
        return self._mask_smallest_slices(rand(t.shape[dim], device=t.device), dim, default_mask)

    @classmethod
    def apply(cls, module: Module, name: str, amount: float, dim: int = -1) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Amount):
    """Prunes the slices along a dim of smallest n-norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        dim = _dim(t, self.dim)
        return self._mask_smallest_slices(t.norm(self.n, [d for d in range(t.ndim) if d != dim]), dim, default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, n: float | str, dim: int, importance_scores: Tensor | None = None
    ) -> Any:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask has 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if tuple(default_mask.shape) != tuple(self.mask.shape):
            raise PruningShapeError(
                f"custom_from_mask: the mask's shape {tuple(self.mask.shape)} is not the parameter's, {tuple(default_mask.shape)}; give one of it"
            )
        return default_mask * self.mask.to(default_mask.dtype)  # what is pruned already stays pruned, whatever the mask says

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> Any:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


# The functions: each prunes a module's tensor in place, and returns the module.
def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune `amount` (a number, or a fraction) of the elements, drawn at random."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the `amount` (a number, or a fraction) of elements of smallest size."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune `amount` (a number, or a fraction) of the slices along dim, drawn at random."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(module: Module, name: str, amount: float, n: float | str, dim: int, importance_scores: Tensor | None = None) -> Module:
    """Prune the `amount` (a number, or a fraction) of slices along dim of smallest n-norm."""
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune what the mask has 0."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: dict[Any, Tensor] | None = None, **kwargs: Any) -> None:
    """Prune several tensors, (module, name) each, as one: the method, an unstructured one made of kwargs, sees all their elements in a row."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable; give pairs (module, name)")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict; give {(module, name): tensor}")
    pairs = list(parameters)  # gone through three times, and it may be a generator
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":  # slices of several tensors in a row are no slices of any
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. {pruning_method.__name__} is "{method.PRUNING_TYPE}"'
        )
    method._tensor_name = "all"  # a container wants one name; this one is never applied to a module
    values = parameters_to_vector([scores.get((module, name), getattr(module, name)).detach() for module, name in pairs])
    masks = [getattr(module, name + "_mask", None) for module, name in pairs]
    default = parameters_to_vector(
        [ones_like(getattr(module, name)) if m is None else m for (module, name), m in zip(pairs, masks, strict=True)]
    )
    mask = PruningContainer(method).compute_mask(values, default.detach())  # the container leaves out what earlier methods masked
    start = 0
    for module, name in pairs:
        param = getattr(module, name)
        custom_from_mask(module, name, mask[start : start + param.numel()].reshape(tuple(param.shape)))
        start += param.numel()


def remove(module: Module, name: str) -> Module:
    """Make the pruned tensor the parameter again: the mask goes, the zeros stay. Raises ValueError where it is not pruned."""
    for key, hook in list_pre_hooks(module, BasePruningMethod):
        if hook._tensor_name == name:
            hook.remove(module)
            remove_pre_hook(module, key)
            return module
    raise ArgumentError(f"Parameter '{name}' of module {type(module).__name__} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether a tensor of the module, or of one below it, is pruned."""
    return any(list_pre_hooks(part, BasePruningMethod) for part in module.modules())
