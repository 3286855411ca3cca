"""Configs of kernels: what a call would take and why, others by force, tuned files by `tritensor tune`."""

from tritensor.ops.tuning.config_choice import Choice as Choice
from tritensor.ops.tuning.config_choice import config_of as config_of
from tritensor.ops.tuning.query import config as config
from tritensor.ops.tuning.query import force as force
from tritensor.ops.tuning.tuned import TunedFileError as TunedFileError
