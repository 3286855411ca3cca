"""torch.futures: values to come, of one thread for another."""

from __future__ import annotations

from tritensor.ground.process.future import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]
