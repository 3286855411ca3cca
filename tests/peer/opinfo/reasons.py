"""Why an operation of PyTorch's database is not here, or fails samples: the operation's name, or the name with its variant, to one line."""

from __future__ import annotations

REASONS: dict[str, str] = {}
