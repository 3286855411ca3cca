"""Result of a trial, in words."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.other_kernels.trial import Trial


class Result(NamedTuple):
    """A trial, and what its two children said (see child.py)."""

    trial: Trial
    numbers: dict[str, Any]
    compiled: dict[str, Any]

    @property
    def seconds(self) -> float:
        return float(self.numbers["seconds"] + self.compiled["seconds"])

    @property
    def refused(self) -> bool:
        """Whether the emulated device refused what it should."""
        return bool(self.trial.finding) and self.trial.finding in self.numbers["error"]

    @property
    def numbers_in_words(self) -> str:
        if self.refused:
            return "refused"
        if self.numbers["error"]:
            return "WRONG"
        return "right, masked lanes as 0" if self.numbers.get("masked") else "right"

    @property
    def compiled_in_words(self) -> str:
        done, of = self.compiled["compiled"]
        if self.compiled["error"]:
            return "refused" if self.trial.finding and self.trial.finding in self.compiled["error"] else "FAILED"
        return str(done) if done == of else f"{done} of {of}"

    @property
    def as_wanted(self) -> bool:
        right = self.refused if self.trial.finding else not self.numbers["error"]
        return right and self.compiled_in_words != "FAILED"

    @property
    def why(self) -> str:
        """The errors, in one line."""
        said = [f"{k}: {e}" for k, e in (("numbers", self.numbers["error"]), ("compiled", self.compiled["error"])) if e]
        return " | ".join(" ".join(s.split())[:600] for s in said) or f"the finding {self.trial.finding!r} is not made any more"
