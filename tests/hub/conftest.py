"""The faulty server for every test, without pauses between tries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.faulty_server import Server, serving
from tritensor.hub import download, repository


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "TRITENSOR_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "PAUSE", 0.0)
    with serving() as running:
        yield running


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder that the hub keeps its files in."""
    monkeypatch.setitem(repository._chosen, "folder", str(tmp_path / "hub"))
    return tmp_path / "hub"
