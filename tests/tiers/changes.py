"""Files that differ from the branch that a change goes to: what was committed since, what was not, what git does not know yet."""

from __future__ import annotations

import subprocess
from pathlib import Path

BRANCHES = ("origin/HEAD", "origin/main", "main")


def git(root: Path, *arguments: str) -> str | None:
    """What git says; None where it is not there, or knows no answer."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def base(root: Path) -> str | None:
    """The commit at which the checkout left its branch; None outside of a checkout."""
    for branch in BRANCHES:
        found = git(root, "merge-base", "HEAD", branch)
        if found:
            return found.strip()
    return (git(root, "rev-parse", "HEAD") or "").strip() or None


def changed(root: Path) -> list[str] | None:
    """Paths from the root, sorted, both names of what was renamed; None where git cannot say."""
    if (git(root, "rev-parse", "--show-cdup") or "outside").strip():  # the root of another checkout, or of none
        return None
    since = base(root)
    known = since and git(root, "diff", "--name-only", "--no-renames", "-z", since)
    new = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if known is None or new is None:
        return None
    return sorted({name for name in (known + new).split("\0") if name})
