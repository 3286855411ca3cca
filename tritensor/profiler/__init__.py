"""Profiler, under the names of torch.profiler: the calls of a stretch of a program, on the CPU and on GPUs. See docs/profiling.md."""

from __future__ import annotations

from tritensor.profiler.profiler import profile as profile
from tritensor.profiler.ranges import record_function as record_function
from tritensor.profiler.results.events import DeviceType as DeviceType
from tritensor.profiler.schedules import ProfilerAction as ProfilerAction
from tritensor.profiler.schedules import ProfilerActivity as ProfilerActivity
from tritensor.profiler.schedules import kineto_available as kineto_available
from tritensor.profiler.schedules import schedule as schedule
from tritensor.profiler.schedules import supported_activities as supported_activities
from tritensor.profiler.schedules import tensorboard_trace_handler as tensorboard_trace_handler
