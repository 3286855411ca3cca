"""The faulty web server of tests/hub, for downloads of data sets."""

from __future__ import annotations

from tests.hub.conftest import server as server
