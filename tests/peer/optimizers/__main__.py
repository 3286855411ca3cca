"""`python -m tests.peer.optimizers [NAME ...]`: how many inputs of each optimizer pass, and what the others do."""

from __future__ import annotations

import sys
import warnings

from tests.peer.optimizers.walk import ABSENT, BOUNDS, INFOS, accepted, differs, inputs_of

warnings.simplefilter("ignore")
for name in sys.argv[1:] or INFOS:
    asked = passed = 0
    lines = []
    for description, settings in inputs_of(name) if name not in ABSENT else []:
        for dtype in BOUNDS:
            for exchange in (False, True):
                asked += 1
                try:
                    said = differs(name, settings, dtype, exchange)
                except Exception as e:
                    said = f"{type(e).__name__}: {e}"
                passed += not said
                if said:
                    lines.append(f"    {description}, {dtype}{', exchanged' if exchange else ''}: {said}")
    lines += [f"    bad input: {line}" for line in accepted(name)]
    print(f"{name}: {passed} of {asked}" + (f" ({ABSENT[name]})" if name in ABSENT else ""), *lines, sep="\n", flush=True)
