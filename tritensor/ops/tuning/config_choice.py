"""Choice of a launch's config: one that is forced, else the tuned file's for this GPU, else the kernel's own rule. Nothing is timed here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from tritensor.ground.errors import ArgumentError
from tritensor.ground.thread_state import here
from tritensor.ops import replay
from tritensor.ops.tuning import tuned
from tritensor.ops.tuning.buckets import bucket_of, dtype_of
from tritensor.ops.tuning.tunables import known
from tritensor.ops.tuning.tuned import Place

FORCED, TUNED, HEURISTIC = "forced", "tuned file", "heuristic"


class Choice(NamedTuple):
    """A config that a launch takes, and where it comes from.

    op, corner: the op that launches ("linear", "backward"); "" outside of ops. kernel: the name that the config goes by ("matmul").
    dtype, bucket: under which a tuned file has it. key: what the rule was asked with. source: "forced", "tuned file" or "heuristic".
    """

    op: str
    corner: str
    kernel: str
    dtype: str
    bucket: str
    key: tuple[Any, ...]
    config: Any
    heuristic: Any
    source: str

    @property
    def place(self) -> Place:
        """What an entry of a tuned file for this launch is called."""
        return Place(self.op, self.corner, self.kernel, self.dtype, self.bucket)

    def __str__(self) -> str:
        return f"{self.op} {self.corner}: {self.kernel} takes {self.config} ({self.source}) for {self.dtype} [{self.bucket}]"


Config = TypeVar("Config")
_by_kernel: dict[str, Any] = {}
_by_op: dict[str, Any] = {}
_by_place: dict[Place, Any] = {}  # what the tuner is at
_notes: list[list[Choice]] = []  # of those that ask what calls would take


def config_of(kernel: str, key: tuple[Any, ...], default: Config) -> Config:
    """The config of one launch: forced, or tuned, or `default`, which is the kernel's own rule. Runs while a call is recorded, not when it is replayed.

    Args:
        kernel: the name that the config goes by; an op of your own gives its own name.
        key: the sizes, flags and element type that the best config depends on, as a tuple; it says which bucket of a tuned file fits.
        default: a NamedTuple or an int. A config of another class is not taken.
    Raises ArgumentError for a forced config that the kernel cannot run with.
    """
    chosen, source = _find_forced(kernel, key, default) if _by_kernel or _by_op or _by_place else None, FORCED
    if chosen is None:
        chosen, source = tuned.entry(kernel, key, default), TUNED
    if chosen is None:
        chosen, source = default, HEURISTIC
    # only while somebody asks: buckets and the words of the corner cost more than the choice
    if _notes:
        op, corner = doing()
        _notes[-1].append(Choice(op, corner, kernel, dtype_of(key), bucket_of(key), key, chosen, default, source))
    return chosen


def doing() -> tuple[str, str]:
    """The op and the corner whose Python runs on this thread: ("softmax", "backward"); two empty words outside."""
    op, _, corner = here.doing.partition(" ")
    return op, corner


def _find_forced(kernel: str, key: tuple[Any, ...], default: Any) -> Any:
    """The config that is forced for this launch, or None. The narrowest wins: the tuner's place, an op's, a kernel's."""
    op, corner = doing()
    chosen = _by_place.get(Place(op, corner, kernel, dtype_of(key), bucket_of(key))) if _by_place else None
    if chosen is None:
        chosen = _by_op.get(op)
        if chosen is not None and not callable(chosen) and type(chosen) is not type(default):
            chosen = None  # an op's config is for those of its kernels that have configs of this class
    if chosen is None:
        chosen = _by_kernel.get(kernel)
    if chosen is None:
        return None
    if callable(chosen):
        chosen = chosen(key, default)
    if type(chosen) is not type(default):
        raise ArgumentError(f"tuning: {kernel} is forced to {chosen!r}; it takes a {type(default).__name__}, such as {default}")
    # the rule's own config is not asked again: it may know better than the check of its fields
    if chosen != default and kernel in known and (wrong := known[kernel].problem(chosen, key)):
        raise ArgumentError(f"tuning: {kernel} is forced to {chosen}: {wrong}; its rule says {default}")
    return chosen


@contextlib.contextmanager
def _set(where: dict[Any, Any], configs: dict[Any, Any]) -> Iterator[None]:
    # a copy: blocks nest, and the inner one may replace what the outer has set
    before = dict(where)
    where.update(configs)
    replay.forget()  # recorded launches hold the configs they were recorded with
    try:
        yield
    finally:
        where.clear()
        where.update(before)
        replay.forget()


def forced(**configs: Any) -> contextlib.AbstractContextManager[None]:
    """Within the block kernels take these configs, by kernel name, unchecked until they launch: `forced(matmul=Tiles(64, 64, 32, 1, 4, 3))`.

    A function `(key, default) -> config` changes what the rule says. `tritensor.tuning.force` is the checked form. One setting for all threads.
    """
    return _set(_by_kernel, configs)


def forced_for(op: str, config: Any) -> contextlib.AbstractContextManager[None]:
    """The same for all kernels of one op that take configs of this class."""
    return _set(_by_op, {op: config})


def forced_at(configs: dict[Place, Any]) -> contextlib.AbstractContextManager[None]:
    """The same for what single entries of a tuned file are for."""
    return _set(_by_place, configs)


@contextlib.contextmanager
def noted() -> Iterator[list[Choice]]:
    """Within the block, a list grows by each config that is asked for."""
    found: list[Choice] = []
    _notes.append(found)
    try:
        yield found
    finally:
        # by identity: two lists that are alike so far are equal, and remove() takes the first
        del _notes[next(i for i, notes in enumerate(_notes) if notes is found)]
