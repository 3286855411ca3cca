"""Kinds of weight decay, which plans and kernels number alike; in a file of its own, so that a plan is made without loading Triton."""

from __future__ import annotations

NONE, COUPLED, DECOUPLED = 0, 1, 2  # none, added to the gradient, or a shrinking of the parameter
