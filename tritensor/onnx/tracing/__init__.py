"""Tracing: one run of a model on sample inputs, in which every op is recorded with its arguments and its results."""

from tritensor.onnx.tracing.trace_run import Trace as Trace
from tritensor.onnx.tracing.trace_run import trace as trace
