"""How a service ends: what is under way is answered, and what was promised is on the disk."""

from __future__ import annotations

import time

import httpx2
import pytest

from .running import Running, make_index


@pytest.mark.soak
def test_workers_end_where_the_process_that_started_them_is_killed(tmp_path):
    make_index(tmp_path / "index")
    service = Running([tmp_path / "index", "--workers", "2"])
    with service.client() as client:
        assert client.get("/readyz").status_code == 200
    service.process.kill()
    service.process.wait(300)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            httpx2.get(f"{service.url}/readyz", trust_env=False, timeout=2)
        except httpx2.ConnectError:
            break
        except httpx2.TransportError:
            pass
        time.sleep(0.1)
    else:
        pytest.fail("a worker still answers")
    service.ended()
