"""Transform: the functions that lower floors call on a wrapped tensor; tritensor.func installs its own, and tritensor.onnx one in front of that."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import TransformError

# Functions that compute on the host from values of their arguments, to a result of a shape that these do not decide: under vmap they run for one
# example after the other.
HOST_FUNCTIONS = frozenset(
    ["bincount", "binomial", "ctc_loss", "draw_dirichlets", "embedding_bag", "draw_gammas", "hash_tensor", "histc", "histogram", "histogramdd",
     "linspace", "logspace", "lstsq", "masked_scatter", "multinomial", "poisson", "repeat_interleave", "segment_reduce", "_segment_reduce"]
)  # fmt: skip


class Transform:
    """The protocol of whoever makes wrapped tensors. Each method raises TransformError until one is in place."""

    def run(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run an op of which an input is wrapped."""
        raise _not_loaded()

    def draw(self, op: Any, attrs: dict[str, Any]) -> Any:
        """Run an op without inputs that draws numbers, inside a transform."""
        raise _not_loaded()

    def add(self, a: Any, b: Any) -> Any:
        """Add two arrays."""
        raise _not_loaded()

    def write(self, target: Any, given: Any, name: str, since: Any = None, beside: tuple[Any, ...] = ()) -> None:
        """Let a wrapped array hold what `given` does: a write in place by the function `name`; see func.interpreter.overwrite."""
        raise _not_loaded()

    def adopt(self, x: Any, value: Any, name: str) -> None:
        """Let x, which is about to be written, stand where `value` does."""
        raise _not_loaded()

    def apply_function(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Apply an autograd.Function of which an argument is wrapped."""
        raise _not_loaded()

    def like(self, made: Any, x: Any) -> Any:
        """Give a new tensor room for what x has, an element for each example."""
        raise _not_loaded()

    def spread(self, x: Any, around: Any = None) -> Any:
        """Give x an element for each example of the vmaps that draw for each."""
        raise _not_loaded()

    def detached(self, array: Any) -> Any:
        """The array without its ways into the graph."""
        raise _not_loaded()

    def read(self, array: Any) -> None:
        """Note that the values of a traced tensor are about to be read; a transform that traces nothing has nothing to note."""

    def for_each(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Any) -> Any:
        """Call one of HOST_FUNCTIONS for one example after the other; `error` is what it raised for all of them."""
        raise _not_loaded()


def _not_loaded() -> TransformError:
    return TransformError("func: tritensor.func is not loaded; import it")


current: Transform = Transform()
