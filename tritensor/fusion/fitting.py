"""Fitting: how the axes of one group lie among another's, so that both run over one space."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tritensor.fusion.group import Group
from tritensor.fusion.program.slots import Slot, SlotRead
from tritensor.fusion.program.steps import fits
from tritensor.fusion.spaces import Mapping, Steps, Unit, mapping, one_step, parts, split, units
from tritensor.ground.strides import contiguous_strides
from tritensor.kernels.parts.view_arithmetic import merge_axes


class Fit:
    """How a guest's axes lie among its host's: the host's cut in parts (`cuts`), more of them behind, and which of them are rows then."""

    __slots__ = ("cuts", "mapping", "rows", "sizes")

    def __init__(self, cuts: list[list[int]] | None, sizes: tuple[int, ...], rows: frozenset[int] | None, how: Mapping) -> None:
        self.cuts, self.sizes, self.rows, self.mapping = cuts, sizes, rows, how

    def host(self, strides: Steps) -> Steps:
        if self.cuts is not None:
            strides = split(strides, self.cuts)
        return strides + (0,) * (len(self.sizes) - len(strides))

    def apply(self, host: Group, guest: Group) -> None:
        """Make the host both."""
        if self.cuts is not None or len(self.sizes) != len(host.sizes):
            for p in host.nodes:
                p.reads, p.made = [self.host(s) for s in p.reads], [self.host(s) for s in p.made]
            host.made = {k: self.host(s) for k, s in host.made.items()}
            host.reads = {k: [(r, self.host(s)) for r, s in found] for k, found in host.reads.items()}
        over = self.mapping.over
        if not self.mapping.same:
            for p in guest.nodes:
                p.reads, p.made = [over(s) for s in p.reads], [over(s) for s in p.made]
        host.sizes, host.rows, host.folds = self.sizes, self.rows, host.folds or guest.folds
        for slot, s in guest.made.items():
            host.made[slot] = over(s)
            host.reads.pop(slot, None)
        for slot, found in guest.reads.items():
            if slot not in host.made:
                host.reads.setdefault(slot, []).extend([(r, over(s)) for r, s in found])
        host.nodes += guest.nodes
        if len(guest.nodes) > 1 or host.nodes[-2].node.place > host.nodes[-1].node.place:
            host.nodes.sort(key=lambda p: p.node.place)


def fit_of(host: Group, guest: Group, by: Slot | None) -> Fit | str:
    """How a guest lies in a host, or why it does not."""
    if by is not None:
        pairs = [(h, g) for _, h in host.reads.get(by, ()) for _, g in guest.reads.get(by, ())]
    else:
        pairs = [(host.made[slot], g) for slot, found in guest.reads.items() if slot in host.made for r, g in found if _is_own(r)]
        if len(pairs) > 1:  # what is most of the space first
            pairs.sort(key=lambda p: p[0].count(0) + p[1].count(0))
    why = "it is read as a part, or in another order"
    for a, b in pairs:
        found = _lying(host, guest, a, b, by is None)
        if type(found) is str:
            why = found
            continue
        assert not isinstance(found, str)
        if _agree(host, guest, found):
            if found.rows is not None and not _in_rows(host, guest, found):
                why = "its rows lie in several pieces"
                continue
            return found
        why = "it is read as a part, or in another order"
    return why


def _is_own(r: SlotRead) -> bool:
    """Whether a read takes a slot's elements as they were made."""
    return r.first == 0 and r.dtype == r.slot.dtype


def _lying(host: Group, guest: Group, a: Steps, b: Steps, made: bool) -> Fit | str:
    """A fit by an array that the host steps through by a, and the guest by b; `made`: the host makes it."""
    if host.sizes == guest.sizes and a == b and (host.rows == guest.rows or host.rows is None or guest.rows is None) and 0 not in a:
        same = Mapping([[(k, n)] for k, n in enumerate(host.sizes)], len(host.sizes))
        return Fit(None, host.sizes, guest.rows if host.rows is None else host.rows, same)
    elsewhere = f"another space: {host.sizes} and {guest.sizes}"
    found = units(host.sizes, a, guest.sizes, b)
    if found is None:
        return elsewhere
    free = [k for k, s in enumerate(a) if not s]
    more = [k for k, s in enumerate(b) if not s]
    if (free or more) and not made:
        return elsewhere
    if free and frozenset(free) != host.rows:
        return elsewhere
    if not free and more and (host.folds or (guest.rows is not None and guest.rows != frozenset(more))):
        return elsewhere
    if free and not more and guest.rows is not None:
        return "it folds what is one for each row"
    new: list[int] = []
    if free and more:
        if guest.rows is not None and guest.rows != frozenset(more):
            return elsewhere
        beside = _rows_beside(host, guest, free, more)
        if beside is None:
            return elsewhere
        found = found + beside
    elif more:
        why = _refuse_rows(host, guest, more)
        if why:
            return why
        new = more
    cuts = parts(found, 0, len(host.sizes))
    cut = any([len(c) > 1 for c in cuts])
    sizes: list[int] = []
    for n, c in zip(host.sizes, cuts, strict=True):
        sizes += reversed(c) if len(c) > 1 else [n]
    how = mapping(found, cuts, len(sizes) + len(new), len(guest.sizes))
    rows = frozenset([at for at, k in _numbered(cuts) if k in (host.rows or ())]) if host.rows is not None else None
    if new:
        for j, k in enumerate(new):
            how.places[k] = [(len(sizes) + j, guest.sizes[k])]
        rows = frozenset(range(len(sizes), len(sizes) + len(new)))
        sizes += [guest.sizes[k] for k in new]
        how = Mapping(how.places, len(sizes))
    if guest.rows is not None and not new:
        theirs = how.axes(guest.rows)
        if rows is not None and rows != theirs:
            return elsewhere
        rows = theirs
    return Fit(cuts if cut else None, tuple(sizes), rows, how)


def _numbered(cuts: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """(new axis, axis that it was part of)."""
    at = 0
    for k, sizes in enumerate(cuts):
        for _ in range(max(len(sizes), 1)):
            yield at, k
            at += 1


def _rows_beside(host: Group, guest: Group, free: list[int], more: list[int]) -> list[Unit] | None:
    """The axes of both that an array steps through that is one for each row: in order, as nothing else says."""
    ours, theirs = [host.sizes[k] for k in free], [guest.sizes[k] for k in more]
    found = units(ours, contiguous_strides(ours), theirs, contiguous_strides(theirs))
    return None if found is None else [(free[i], more[j], n) for i, j, n in found]


def _refuse_rows(host: Group, guest: Group, more: list[int]) -> str:
    """Why a guest's axes that its host has not cannot be rows of what the host makes one for each."""
    n = math.prod([guest.sizes[k] for k in more])
    if not fits(math.prod(host.sizes), n):
        return f"{math.prod(host.sizes)} rows of {n} elements are too few, or too long"
    lies = next(iter(guest.made.values()))
    steps = [s for s in lies if s]
    if steps and not any([lies[k] == min(steps) for k in more]):
        return "its rows do not lie along memory"
    return ""


def _agree(host: Group, guest: Group, fit: Fit) -> bool:
    """Whether each reads what the other makes element by element as it was made."""
    over = fit.mapping.over
    for slot, found in guest.reads.items():
        if slot in host.made:
            own = fit.host(host.made[slot])
            if not all([_is_own(r) and over(s) == own for r, s in found]):
                return False
    for slot, found in host.reads.items():
        if slot in guest.made:
            own = over(guest.made[slot])
            if not all([_is_own(r) and fit.host(s) == own for r, s in found]):
                return False
    return True


def _in_rows(host: Group, guest: Group, fit: Fit) -> bool:
    """Whether a kernel of rows can step through all arrays: on a GPU with one stride along rows, and one along the elements of one; on the CPU with two."""
    assert fit.rows is not None
    rows = sorted(fit.rows)
    kept = [k for k in range(len(fit.sizes)) if k not in fit.rows]
    if len(kept) < 2 and len(rows) < 2:
        return True
    ours = [fit.host(s) for s in _strides(host)] if host.rows != fit.rows or fit.cuts is not None else []  # else they have been asked
    theirs = [fit.mapping.over(s) for s in _strides(guest)]
    both = [([fit.sizes[k] for k in axes], axes) for axes in (kept, rows)]
    if all([one_step(sizes, [s[k] for k in axes]) for s in (*ours, *theirs) for sizes, axes in both]):
        return True
    if host.nodes[0].node.device.type != "cpu":
        return False
    steps = [*[fit.host(s) for s in _strides(host)], *theirs]
    return all([len(merge_axes(sizes, [[s[k] for k in axes] for s in steps])[0]) <= 2 for sizes, axes in both])


def _strides(group: Group) -> list[Steps]:
    """Of all arrays that a group reads and makes."""
    return [*[s for found in group.reads.values() for _, s in found], *group.made.values()]
