"""Public functions that no expression asks."""

from __future__ import annotations

import re

from tests.expressions.listed import FAMILIES
from tests.expressions.record import ours
from tritensor.tensor.public_api.publish import public


def unasked() -> list[str]:
    """Names of public functions that are in no expression."""
    asked = {name for family in FAMILIES.values() for e in family for name in re.findall(r"[.\s(]([A-Za-z_0-9]+)\(", ours(e))}
    without = {"from_dlpack", "get_rng_state", "set_rng_state", "seed"}  # what they give is no number to compare
    aliases = {id(f): name for name, f in public.items() if name in asked}  # of one function under two names one is enough
    return [name for name, f in public.items() if name not in asked | without and id(f) not in aliases]
