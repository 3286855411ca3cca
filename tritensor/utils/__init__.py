"""Utilities: tensorboard, benchmark, flop counter, progress, lint; and PyTorch's spelling of what stands elsewhere, `utils.data`."""

from typing import Any

from tritensor.utils import data as data


def lint(model: Any, *inputs: Any, loss: Any = None, optimizer: Any = None) -> Any:
    """Known slips in a model, each with the path of the module and how to mend it: see tritensor/utils/linting.

    With `inputs` the model runs, and parameters that take no part are named; `loss` takes its output, `optimizer` trains it.
    """
    from tritensor.utils import linting

    return linting.lint(model, *inputs, loss=loss, optimizer=optimizer)
