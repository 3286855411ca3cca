"""Replay: a corner's call with known layouts runs no Python of the corner, only its allocations and launches."""

from tritensor.ops.replay.corner import Corner as Corner
from tritensor.ops.replay.corner import bare as bare
from tritensor.ops.replay.corner import enable as enable
from tritensor.ops.replay.corner import forget as forget
from tritensor.ops.replay.corner import keep_view as keep_view
from tritensor.ops.replay.corner import named_part as named_part
