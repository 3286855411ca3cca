"""Configs of kernels: what a call would take and why, others by force, tuned files by `tritensor tune`."""

from tritensor.tuning.asking import config as config
from tritensor.tuning.asking import force as force
from tritensor.tuning.choosing import Choice as Choice
from tritensor.tuning.choosing import config_of as config_of
from tritensor.tuning.tuned import TunedFileError as TunedFileError
