"""Training and evaluation modes of an export."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.nn.inspection import preserve_modes
from tritensor.nn.module import Module


class OperatorExportTypes(enum.Enum):
    """Which operators are written: those of ONNX. The others are PyTorch's, for scripts that hand them on."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class TrainingMode(enum.Enum):
    """EVAL: in eval mode; PRESERVE: as the model is; TRAINING: in training mode."""

    EVAL, PRESERVE, TRAINING = range(3)


@contextlib.contextmanager
def select_model_mode_for_export(model: Any, mode: TrainingMode = TrainingMode.EVAL) -> Iterator[None]:
    """Inside, a module is in the mode; afterwards each of its modules in its own again."""
    name = getattr(mode, "name", None)
    if name not in TrainingMode.__members__:
        raise ArgumentError(f"onnx.export: training is {mode!r}; give TrainingMode.EVAL, PRESERVE or TRAINING")
    # a function has no mode
    if not isinstance(model, Module) or name == "PRESERVE":
        yield
        return
    with preserve_modes(model):
        model.train(name == "TRAINING")
        yield
