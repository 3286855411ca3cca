"""Conversion of parameters to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from tritensor.ground.errors import ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import checked


@checked
def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters one after the other, as one 1-d tensor; differentiable."""
    parts = [p.reshape(-1) for p in parameters]
    if not parts:
        raise ValueError("parameters_to_vector: no parameters were given")
    return ops.cat(*parts, dim=0)


@checked
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give the parameters the values of one vector, in order, through `.data`. Raises ShapeError if the sizes do not add up."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: expected a Tensor, not {type(vec).__name__}")
    listed = list(parameters)  # gone through twice, and it may be a generator
    total = sum(p.numel() for p in listed)
    if tuple(vec.shape) != (total,):
        raise ShapeError(
            f"vector_to_parameters: vec {tuple(vec.shape)} for parameters of {total} elements; give a vector of shape ({total},)"
        )
    start = 0
    for p in listed:
        # a copy: parameters must not share the vector's memory
        p.data = vec[start : start + p.numel()].reshape(tuple(p.shape)).detach().clone()
        start += p.numel()
