"""Timing of statements under the names of torch.utils.benchmark: Timer, its Measurement, tables that compare."""

from __future__ import annotations

from tritensor.utils.benchmark.compare import Colorize as Colorize
from tritensor.utils.benchmark.compare import Compare as Compare
from tritensor.utils.benchmark.measurement import Measurement as Measurement
from tritensor.utils.benchmark.measurement import TaskSpec as TaskSpec
from tritensor.utils.benchmark.measurement import ordered_unique as ordered_unique
from tritensor.utils.benchmark.measurement import select_unit as select_unit
from tritensor.utils.benchmark.measurement import trim_sigfig as trim_sigfig
from tritensor.utils.benchmark.measurement import unit_to_english as unit_to_english
from tritensor.utils.benchmark.timer import Language as Language
from tritensor.utils.benchmark.timer import Timer as Timer
from tritensor.utils.benchmark.timer import set_torch_threads as set_torch_threads
from tritensor.utils.benchmark.timer import timer as timer
