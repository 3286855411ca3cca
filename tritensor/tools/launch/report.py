"""The launcher's own report on stderr: where ranks run, who failed first and with what, and who ended because of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritensor.tools.launch.group import Group, Rank

NAME = "tritensor.launch"


def table(group: Group, threads: Mapping[str, str]) -> str:
    """Where each rank runs: its host, cores and number of BLAS threads."""
    numbers = set(threads.values())  # one number is the rule: three columns would say it thrice
    blas = numbers.pop() if len(numbers) == 1 else ", ".join(f"{name.removesuffix('_NUM_THREADS')} {n}" for name, n in threads.items())
    rows = [("rank", "host", "cores", "BLAS threads")]
    rows += [(str(r.number), r.host, _join_ranges(r.started["cores"] if r.started else []), blas) for r in group.ranks]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    size = len(group.ranks)
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([f"{NAME}: {size} rank{'s' * (size > 1)}", *(f"  {line}" for line in lines)]) + "\n"


def _join_ranges(numbers: Sequence[int]) -> str:
    """0-3,8 for 0, 1, 2, 3, 8."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def failures(group: Group, first: Rank, grace: float) -> str:
    """The first failure with its traceback, and in one line the ranks that ended because of it."""
    where = f"{NAME}: rank {first.number} on host {first.host}"
    if first.failed is not None:
        text = f"{where} failed:\n{first.failed['traceback']}"
    elif first.signal is not None:
        text = f"{NAME}: rank {first.number} (pid {first.ended['pid'] if first.ended else '?'}) was killed by signal {first.signal} on host {first.host}\n"
    else:
        text = f"{where} ended with exit code {first.code} and no exception (os._exit, or a library that ends the process)\n"
    if first.failed is None and first.ended is not None and first.ended["traceback"]:
        text += first.ended["traceback"]
    groups: dict[str, list[int]] = {}
    for rank in group.ranks:
        how = None if rank is first else _describe_end(rank, grace)
        if how is not None:
            groups.setdefault(how, []).append(rank.number)
    if groups:
        said = "; ".join(f"{_name_ranks(numbers)}: {how}" for how, numbers in groups.items())
        text = text.rstrip("\n") + f"\n{NAME}: because of it ended {said}\n"
    return text


def _describe_end(rank: Rank, grace: float) -> str | None:
    """How a rank ended that was not the first to fail, in one line; None where it ended well."""
    if rank.failed is not None:
        return " ".join(rank.failed["last"].split())
    if rank.stopped or rank.ended is None:
        return f"by the launcher, {grace:g} s after the failure" if rank.stopped else "without a word"
    if rank.signal is not None:
        return f"by signal {rank.signal}"
    return f"with exit code {rank.code}" if rank.code else None


def _name_ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' * (len(numbers) > 1)} {_join_ranges(numbers).replace(',', ', ')}"
