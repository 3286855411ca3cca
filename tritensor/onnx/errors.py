"""Errors that an export raises."""

from __future__ import annotations


class OnnxExporterError(RuntimeError):
    """A model that cannot be exported as asked; the message says where and how to mend it. Nothing was written."""


class UnsupportedOperatorError(OnnxExporterError):
    """Ops that ONNX, or its version that was asked for, has no operators for; the message names each with its module."""


class DynamicAxisError(OnnxExporterError):
    """An axis that cannot stay dynamic, because what the model does with its size is fixed by the trace."""
