"""The kinds of programs: each file draws one, and says who judges it."""

from __future__ import annotations

from tests.fuzz.kinds import configurations, devices, files, loaders, modules, optimizers, probability, tensors, transforms
from tests.fuzz.kinds.kind import Kind

_ALL = (tensors, transforms, modules, optimizers, configurations, probability, loaders, files, devices)
KINDS: dict[str, Kind] = {room.KIND.name: room.KIND for room in _ALL}
