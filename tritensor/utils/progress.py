"""Progress on stderr: tqdm's bar on a terminal where tqdm is installed, else a line now and then."""

from __future__ import annotations

import sys
import time
from typing import Any

_EVERY = 5.0  # seconds between lines where there is no bar


class Bar:
    """How far a long job is: `step()` after each part, `say(line)` for what is to stay readable, `close()` at the end.

    Args:
        title: stands in front.
        unit: what is counted, in the plural: "kernels".
        total: how many there will be; None where that is not known (yet: see `begin`).
        done: how many were done before.
    """

    def __init__(self, title: str, unit: str, total: int | None = None, done: int = 0) -> None:
        self._title, self._unit, self._total, self._done = title, unit, total, done
        self._next = 0.0
        self._tqdm: Any = None
        if sys.stderr.isatty():
            try:
                from tqdm import tqdm  # type: ignore[import-untyped]

                self._tqdm = tqdm(desc=title, unit=f" {unit}", total=total, initial=done, file=sys.stderr)
                return
            except ModuleNotFoundError as missing:
                if missing.name != "tqdm":
                    raise
        if total is None:
            print(title, file=sys.stderr, flush=True)

    def begin(self, title: str, total: int) -> None:
        """Another title, and the total, once it is known."""
        self._title, self._total = title, total
        if self._tqdm is not None:
            self._tqdm.total = total
            self._tqdm.set_description(title)

    def step(self, note: str = "") -> None:
        """One part is done; `note` says what is known of it."""
        self._done += 1
        if self._tqdm is not None:
            if note:
                self._tqdm.set_postfix_str(note, refresh=False)
            self._tqdm.update()
        elif time.monotonic() >= self._next or self._done == self._total:
            of = "" if self._total is None else f" of {self._total}"
            print(f"{self._title}: {self._done}{of} {self._unit}{note and ', '}{note}", file=sys.stderr, flush=True)
            self._next = time.monotonic() + _EVERY

    def say(self, line: str) -> None:
        """A line that stays, above the bar."""
        if self._tqdm is not None:
            self._tqdm.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._tqdm is not None:
            self._tqdm.close()
