"""Replay: a corner's call with known layouts runs no Python of the corner, only its allocations and launches."""

from tritensor.ops.replay.corner import Corner as Corner
from tritensor.ops.replay.corner import attributes_part as attributes_part
from tritensor.ops.replay.corner import enable as enable
from tritensor.ops.replay.corner import forget as forget
from tritensor.ops.replay.corner import record_view as record_view
from tritensor.ops.replay.corner import unwrap_corner as unwrap_corner
from tritensor.ops.replay.corner import value_part as value_part
from tritensor.ops.replay.corner import when_forgotten as when_forgotten
from tritensor.ops.replay.recorder import address_of as address_of
from tritensor.ops.replay.replayed_numbers import seed_numbers as seed_numbers
