"""Slower variants of ops that ran: the value of `variants()`, which prints as a table."""

from __future__ import annotations

from typing import NamedTuple

from tritensor.ops.tuning import variants


class Variant(NamedTuple):
    """A slower variant that ran: of which op, how it is called, how often, why, and how to come to the fast kernel ("" where nothing helps)."""

    op: str
    variant: str
    times: int
    why: str
    mend: str


class Variants(tuple[Variant, ...]):
    """The slower variants that ran in this process, the most frequent first; `clear()` counts anew. Printing it gives a table."""

    __slots__ = ()

    @staticmethod
    def clear() -> None:
        """Forget what ran so far. Values that were given before stay as they are."""
        variants.forget()

    def __repr__(self) -> str:
        if not self:
            return "no slower variant ran"
        # Columns as wide as their longest entry, so that the table lines up.
        names, kinds = max(len(v.op) for v in self), max(len(v.variant) for v in self)
        calls = sum(v.times for v in self)
        rows = [f"{calls} call{'s' * (calls != 1)} took a slower variant"]
        rows += [
            f"{v.times:6d} x  {v.op:{names}s}  {v.variant:{kinds}s}  {v.why}" + (f"; to mend it: {v.mend}" if v.mend else "") for v in self
        ]
        return "\n".join(rows)


def list_variants() -> Variants:
    """What was noted so far."""
    return Variants(Variant(op, variant, n, *why.partition("; ")[::2]) for (op, variant, why), n in variants.noted())
