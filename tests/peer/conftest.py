"""Comparisons with torch are collected where torch is installed: it is a peer, never a dependency."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
