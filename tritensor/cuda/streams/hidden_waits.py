"""Hidden waits: places where the host stops until the GPU has caught up tell this module, which counts them while someone listens.

A place that waits writes `if waits.listener is not None: waits.note("item")`: one look when nobody listens. The kinds in use:
"copy to host", "copy to device", "synchronize", "stream synchronize", "event synchronize", "free".
"""

from __future__ import annotations

from collections.abc import Callable

from tritensor.ground.call_site import user_line

# Called with (kind, user's line) at each wait; None: nobody listens.
listener: Callable[[str, str], None] | None = None


def note(kind: str) -> None:
    """Say that the host waits for the GPU here."""
    if listener is not None:  # the line is looked for only then: a walk up the stack costs as much as a short wait
        listener(kind, user_line())
