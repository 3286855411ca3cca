"""The ledger: what is done, of which tree, on which GPU; a JSON file that is whole at every moment and from which the next run goes on.

Another tree, GPU driver or Triton makes another identity. Its outcomes of steps that pass or fail prove nothing of this tree: they are told under
"older" and asked again, first of all. Its figures are kept in their places, marked as an older tree's, and measured again when all else is done.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tritensor.io.atomic import atomic_write

NAME = "ledger.json"
FORMAT = 1
WORDS = 300  # characters of an error that are kept
OVER = ("passed", "failed", "died", "hung")  # outcomes of a step that is done
SAME = ("tree", "gpu", "driver", "triton")  # what makes an identity


class LedgerError(Exception):
    """A file that is no ledger of this GPU; the message names it."""


@dataclasses.dataclass
class Entry:
    """A step's line. `outcome`: one of OVER, "unfinished" (begun, and items or time were left), "left" (not begun: `why` says it) or "" (not yet).
    `errors`: the first of `failed`, a line each. `items`: of each, outcome, seconds and the first line of what was found. `older`: the tree that a figure
    is of, "" for this one."""

    outcome: str = ""
    seconds: float = 0.0
    figures: str = ""
    why: str = ""
    errors: list[str] = dataclasses.field(default_factory=list)
    failed: int = 0
    items: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    older: str = ""

    @property
    def done(self) -> bool:
        return self.outcome in OVER and not self.older


def first_line(text: str) -> str:
    """The first line that says something, no longer than a ledger keeps."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:WORDS]


class Ledger:
    """What is known, and the file that it stands in. Every change is written at once, or within half a second by tick()."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.path = folder / NAME
        self.identity = dict(identity)
        self.steps: dict[str, Entry] = {}
        self.older: list[dict[str, Any]] = []
        self._written, self._dirty = 0.0, True

    def entry(self, step: str) -> Entry:
        return self.steps.setdefault(step, Entry())

    def item(self, step: str, row: Mapping[str, Any]) -> None:
        """Note how an item of a step went."""
        findings = row.get("findings") or [""]
        self.entry(step).items[row["item"]] = [row["outcome"], row.get("seconds", 0.0), first_line(str(findings[0]))]
        self._dirty = True

    def note(self, step: str, **changes: Any) -> None:
        """Change a step's line, and write the ledger."""
        self.steps[step] = dataclasses.replace(self.entry(step), **changes)
        self.write()

    def tick(self) -> None:
        """Write what changed, at most twice a second."""
        if self._dirty and time.monotonic() - self._written > 0.5:
            self.write()

    def write(self) -> None:
        content = {
            "lease": FORMAT,
            "identity": self.identity,
            "steps": {name: dataclasses.asdict(entry) for name, entry in self.steps.items()},
            "older": self.older,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path) as file:
            file.write((json.dumps(content, separators=(",", ":")) + "\n").encode())
        self._written, self._dirty = time.monotonic(), False

    def go_on(self, before: Mapping[str, Any], proofs: Iterable[str]) -> bool:
        """Take over what another run's ledger holds; whether it is of the same identity. `proofs`: the steps that pass or fail, and are asked again."""
        self.older = list(before["older"])
        steps = {name: Entry(**entry) for name, entry in before["steps"].items()}
        identity = before["identity"]
        same = all(identity.get(k) == self.identity.get(k) for k in SAME)
        if not same:
            self.older.append(
                {"identity": identity, "steps": {n: [e.outcome, e.seconds, e.figures] for n, e in steps.items() if not e.older}}
            )
            tree = str(identity.get("commit") or identity.get("tree"))[:12]
            steps = {n: dataclasses.replace(e, older=e.older or tree, items={}) for n, e in steps.items() if n not in proofs and e.figures}
        self.steps = steps
        self._dirty = True
        return same


def read(path: Path) -> dict[str, Any]:
    """A ledger's content. Raises LedgerError naming the file where it is none."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise LedgerError(f"{path}: {error.strerror if isinstance(error, OSError) else f'no JSON: {error}'}") from None
    if not isinstance(content, dict) or content.get("lease") != FORMAT or not isinstance(content.get("steps"), dict):
        raise LedgerError(f"{path}: no ledger of `python -m tests.gpu.lease`, or one of another format")
    return content


def of_this_gpu(path: Path, gpu: str) -> dict[str, Any]:
    """A ledger of a GPU of this kind. Raises LedgerError naming the file where it is none."""
    content = read(path)
    made_on = content["identity"].get("gpu") or ""
    if made_on and made_on != gpu:
        raise LedgerError(f"{path}: is of {made_on}, and this GPU is {gpu}: leave --resume out, or name a ledger of this GPU")
    return content
