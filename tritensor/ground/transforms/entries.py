"""What the floors below call when they meet a layered tensor. tritensor.func puts its functions here, and tritensor.onnx its own in front of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import TransformError

# Functions that compute on the host from values of their arguments, to a result of a shape that these do not decide: under vmap they run for one
# example after the other.
HOST_FUNCTIONS = frozenset(
    ["bincount", "binomial", "ctc_loss", "dirichlets_drawn", "embedding_bag", "gammas_drawn", "hash_tensor", "histc", "histogram", "histogramdd",
     "linspace", "logspace", "lstsq", "masked_scatter", "multinomial", "poisson", "repeat_interleave", "segment_reduce", "_segment_reduce"]
)  # fmt: skip


def _missing(*args: Any) -> Any:
    raise TransformError("func: tritensor.func is not loaded; import it")


# Put here by tritensor.func, which alone makes layers.
run: Callable[..., Any] = _missing  # (op, inputs, attrs): an op of which an input is layered
draw: Callable[..., Any] = _missing  # (op, attrs): an op without inputs that draws numbers, inside a transform
add: Callable[..., Any] = _missing  # (a, b): the sum of two arrays
write: Callable[..., Any] = _missing  # (array, value, name, since, beside): a layered array becomes what `value` holds; see overwrite
adopt: Callable[..., Any] = _missing  # (x, value, name): let x, which is about to be written, stand where value does
apply_function: Callable[..., Any] = _missing  # (cls, args, kwargs): an autograd.Function of which an argument is layered
like: Callable[..., Any] = _missing  # (made, x): a new tensor with room for what x has, an element for each example
spread: Callable[..., Any] = _missing  # (x, around): with an element for each example of vmaps that draw for each
detached: Callable[..., Any] = _missing  # (array): without its ways into the graph
read: Callable[..., Any] = _missing  # (array): the values of a traced tensor are about to be read
for_each: Callable[..., Any] = _missing  # (f, args, kwargs, error): a function of HOST_FUNCTIONS that met examples
