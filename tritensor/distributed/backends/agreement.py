"""A check that all processes of a group are in the same call: one number for each is compared; where they differ, an error quotes each call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn
from zlib import crc32

import numpy as np

from tritensor.distributed.backends.interface import Backend
from tritensor.distributed.calls import Call
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.errors import DistError, ShapeError
from tritensor.ops.array import empty, from_host, to_host

_TEXT = 512  # bytes of a rank's own words where calls differ


def check_same_call(backend: Backend, call: Call, ranks: Sequence[int]) -> None:
    """Raise DistError on all processes where they are not all in the same call, given alike (`call.name`, `call.what`).

    `ranks` are the numbers in the whole world of the backend's processes, for the message.
    """
    # The least of (x, -x) over all ranks: the two are each other's negative where all gave the same x.
    x = crc32(f"{call.name} {call.what}".encode())
    both = from_host(np.array([x, -x], np.int64), backend.device)
    # With a time it is the host that waits, on a GPU too.
    backend.all_reduce(call, ReduceOp.MIN, both).wait(backend.seconds)
    least, negative = to_host(both).tolist()
    if least == x == -negative:
        return
    mine = np.frombuffer(f"{call.name} {call.what} @{call.line}".encode()[:_TEXT].ljust(_TEXT), np.uint8)
    texts = empty((backend.size, _TEXT), mine.dtype, backend.device)
    backend.all_gather(call, from_host(mine, backend.device), texts).wait(backend.seconds)
    _raise_difference(call, ranks, [row.tobytes().decode(errors="replace").rstrip() for row in to_host(texts)])


def check_counts(backend: Backend, call: Call, ranks: Sequence[int], give: Sequence[int], take: Sequence[int]) -> None:
    """Raise ShapeError on all processes where one takes another number of elements than is given to it: MPI would leave some unwritten.

    `give[i]` are for process i, `take[i]` from it; `ranks` as in `check_same_call`.
    """
    mine = from_host(np.array([give, take], np.int64), backend.device)
    whole = empty((backend.size, 2, backend.size), np.dtype(np.int64), backend.device)
    backend.all_gather(call, mine, whole).wait(backend.seconds)
    given, taken = to_host(whole)[:, 0], to_host(whole)[:, 1].T
    for i, j in np.argwhere(given != taken).tolist():
        raise ShapeError(
            f"{call}: rank {ranks[i]} gives rank {ranks[j]} {given[i, j]} elements, which takes {taken[i, j]} from it; make the sizes agree"
        )


def _raise_difference(call: Call, ranks: Sequence[int], texts: Sequence[str]) -> NoReturn:
    """Raise DistError: the fewest ranks that differ are named first."""
    groups: dict[str, list[int]] = {}
    for rank, text in zip(ranks, texts, strict=True):
        groups.setdefault(text.partition(" @")[0], []).append(rank)
    by_rank = dict(zip(ranks, texts, strict=True))
    said = [
        f"rank{'s' * (len(alike) > 1)} {', '.join(map(str, alike))}: " + by_rank[alike[0]].replace(" @", " at ")
        for alike in sorted(groups.values(), key=len)
    ]
    raise DistError(f"call {call.number} of {call.group} is not the same on all ranks: " + "; ".join(said))
