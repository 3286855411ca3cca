"""Tracing: a model is run on sample inputs, and every op that it calls is noted with what it was given and what it gave."""

from tritensor.onnx.tracing.trace_run import Trace as Trace
from tritensor.onnx.tracing.trace_run import trace as trace
