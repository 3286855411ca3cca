"""Faults that change no answer, one by one, each with its reason; `equivalent` knows others by rule."""

from __future__ import annotations

from tests.mutate.listed.ops import OPS
from tests.mutate.listed.parts import PARTS
from tests.mutate.listed.tensors import TENSORS

# file -> (a function, a line of it, the same with the fault in it) -> why no answer changes
EQUIVALENT = OPS | PARTS | TENSORS
