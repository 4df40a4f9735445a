"""Whether runs go online is found out before the work, and said in one line; a server that is not there is not waited for."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_runs import LOGIN

PROGRAM = """
from pathlib import Path
from nlp_retrieval import WandbSettings
from nlp_retrieval.reports import WandbLogger
from nlp_retrieval.errors import RetrievalError
try:
    print(WandbLogger(WandbSettings("hover", {mode!r})).check(Path("runs")))
except RetrievalError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def port() -> Iterator[int]:
    """Of a socket that takes connections while the test runs."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def said(mode: str | None, home: Path, **environment: str) -> str:
    left = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_") and "proxy" not in key.lower()}
    clean = left | {"HOME": str(home), "NETRC": str(home / "none")} | environment
    command = [sys.executable, "-c", PROGRAM.format(mode=mode)]
    return subprocess.run(command, env=clean, cwd=home, capture_output=True, text=True, check=True).stdout.strip()


def closed() -> str:
    """The address of a port that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_without_a_key_runs_stay_here(tmp_path: Path) -> None:
    place = "runs go to runs/wandb, for wandb sync"
    assert said(None, tmp_path) == f"Weights & Biases: no API key is configured; {place}"
    assert said("offline", tmp_path, WANDB_API_KEY=LOGIN) == f"Weights & Biases: offline, as requested; {place}"


def test_with_a_key_and_a_server_runs_go_online(tmp_path: Path, port: int) -> None:
    server = f"http://127.0.0.1:{port}"
    for mode in (None, "online"):
        told = said(mode, tmp_path, WANDB_API_KEY=LOGIN, WANDB_BASE_URL=server)
        assert told == f"Weights & Biases: online, at {server}; runs go to project hover"


def test_without_a_network_runs_stay_here_or_are_refused_where_online_was_asked_for(tmp_path: Path) -> None:
    server = closed()
    told = said(None, tmp_path, WANDB_API_KEY=LOGIN, WANDB_BASE_URL=server)
    assert told == f"Weights & Biases: {server} cannot be reached; runs go to runs/wandb, for wandb sync"
    told = said("online", tmp_path, WANDB_API_KEY=LOGIN, WANDB_BASE_URL=server)
    assert told.startswith(f"OutputError wandb.mode is online, and {server} cannot be reached; check the network")


def test_a_proxy_is_trusted_to_know_the_server(tmp_path: Path) -> None:
    told = said(None, tmp_path, WANDB_API_KEY=LOGIN, WANDB_BASE_URL=closed(), http_proxy="http://127.0.0.1:9")
    assert "online, at" in told
