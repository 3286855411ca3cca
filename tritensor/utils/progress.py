"""Progress on stderr: tqdm's bar on a terminal or in a notebook, where tqdm is installed; else a line now and then."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TypeVar

from tritensor.ground.errors import ArgumentError

_EVERY = 5.0  # seconds between lines where there is no bar
_ENVIRONMENT = "TRITENSOR_PROGRESS"
T = TypeVar("T")


class Bar:
    """The progress of a long job: `step()` after each part, `say(line)` for what is to stay readable, `close()` at the end. A context manager.

    The environment variable TRITENSOR_PROGRESS=0 shows nothing of it, TRITENSOR_PROGRESS=lines lines in place of a bar. Bars inside of one
    another stand in lines below each other.

    Args:
        title: stands in front.
        unit: what is counted, in the plural: "kernels".
        total: the number there will be; None where that is not known (yet: see `begin`).
        done: the number done before.
        delay: seconds before anything is shown: what is done sooner needs no bar.
        stays: whether the bar stays on the screen when it is closed; one inside of another had better not.
    """

    def __init__(self, title: str, unit: str, total: int | None = None, done: int = 0, delay: float = 0.0, stays: bool = True) -> None:
        self._title, self._unit, self._total, self._done = title, unit, total, done
        self._next = time.monotonic() + delay if delay else 0.0
        self._bar: Any = None
        self._printed = False
        self._display = _choose_display()
        if self._display == "bar" and (kind := _load_tqdm()) is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a notebook without ipywidgets is told each time
                self._bar = kind(desc=title, unit=f" {unit}", total=total, initial=done, file=sys.stderr, delay=delay, leave=stays)
        elif total is None and not delay:  # a job of unknown length: at least its name
            self._print(title)

    def begin(self, title: str, total: int | None) -> None:
        """Set another title, and the total, once it is known."""
        self._title, self._total = title, total
        if self._bar is not None:
            self._bar.total = total
            self._bar.set_description(title)

    def step(self, note: str = "", by: int = 1) -> None:
        """Note that one part is done, or `by` are; `note` is shown with it."""
        self._done += by
        if self._bar is not None:
            if note:
                self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(by)
        elif time.monotonic() >= self._next or (self._done == self._total and self._shown):
            of = "" if self._total is None else f" of {self._total}"
            self._print(f"{self._title}: {self._done}{of} {self._unit}{note and ', '}{note}")
            self._next = time.monotonic() + _EVERY

    @property
    def _shown(self) -> bool:
        """Whether lines have begun: no delay, or one that is over."""
        return self._next == 0.0 or self._printed

    def say(self, line: str) -> None:
        """Print a line that stays, above the bar."""
        if self._bar is not None:
            self._bar.write(line, file=sys.stderr)
        else:
            self._print(line)

    def _print(self, line: str) -> None:
        if self._display != "nothing":
            self._printed = True
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the bar as it is, or take it off the screen where it does not stay."""
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def show_progress(
    items: Iterable[T], title: str, unit: str, total: int | None = None, delay: float = 2.0, show: bool = True
) -> Iterator[T]:
    """The items one by one, with a bar where they take longer than `delay` seconds; it leaves nothing on a terminal."""
    if not show:
        yield from items
        return
    with Bar(title, unit, len(items) if total is None and isinstance(items, Sized) else total, delay=delay, stays=False) as bar:
        for item in items:
            yield item
            bar.step()


def _choose_display() -> str:
    """The display to be used: "bar", "lines" or "nothing". Raises ValueError for another value of the environment variable."""
    asked = os.environ.get(_ENVIRONMENT, "1")
    if asked not in ("0", "1", "lines"):
        raise ArgumentError(f"{_ENVIRONMENT} is {asked!r}; set it to 0 (nothing), lines, or 1 (a bar where there can be one)")
    if asked != "1":
        return "nothing" if asked == "0" else "lines"
    return "bar" if sys.stderr.isatty() or _in_notebook() else "lines"


def _in_notebook() -> bool:
    """Whether this is a kernel of Jupyter's, whose output a bar can be drawn in."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


def _load_tqdm() -> Any:
    """tqdm's bar for where this runs; None where tqdm is not installed."""
    try:
        if _in_notebook():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from tqdm.auto import tqdm as notebook  # type: ignore[import-untyped]

            return notebook
        from tqdm import tqdm  # type: ignore[import-untyped]

        return tqdm
    except ModuleNotFoundError as missing:
        if missing.name != "tqdm":  # tqdm is there and broken
            raise
        return None
