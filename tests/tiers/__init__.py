"""Tiers of the suite, each with the words by which pytest chooses it: quick in a clean tree, standard before a change lands; the rest is full."""

_ANYWHERE = "not slow and not static and not gpu and not peer"
TIERS = {"quick": f"not standard and {_ANYWHERE}", "standard": _ANYWHERE}
