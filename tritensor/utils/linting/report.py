"""Report of lint: slips, each with its rule, the path of its module and the mend."""

from __future__ import annotations

from typing import Any, NamedTuple


class Slip(NamedTuple):
    """A finding: the rule's name, the path of the module, what is the matter, and what to do."""

    rule: str
    path: str
    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.path or '(the model)'}: {self.what}; {self.mend} [{self.rule}]"


class Report(list[Slip]):
    """The slips of a model. Printing it gives a line for each."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no slips found"


def is_kind(module: Any, *beginnings: str) -> bool:
    """Whether a module's class, or one that it comes from, has a name that begins so."""
    return any(c.__name__.startswith(b) for c in type(module).__mro__ for b in beginnings)


def child_path(path: str, name: str) -> str:
    """The path of a child."""
    return f"{path}.{name}" if path else name
