"""torch.onnx's names that models ask for while they run: nothing is exported."""

from __future__ import annotations

import enum


class OperatorExportTypes(enum.Enum):
    """How PyTorch's old exporter writes ops, for scripts that hand it on."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class TrainingMode(enum.Enum):
    """In which mode PyTorch's exporter puts a model, for scripts that hand it on."""

    EVAL, PRESERVE, TRAINING = range(3)


def is_in_onnx_export() -> bool:
    """False: nothing is exported."""
    return False
