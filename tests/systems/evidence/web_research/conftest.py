"""A web server for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .web_server import WebServer, web_server


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as running:
        yield running
