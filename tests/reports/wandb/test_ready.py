"""Whether runs go online is found out before the work, and said in one line; a server that is not there is not waited for."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_runs import LOGIN

PROGRAM = """
import json, os, sys
from pathlib import Path
from nlp_retrieval import WandbSettings
from nlp_retrieval.reports import WandbLogger
from nlp_retrieval.errors import RetrievalError
import wandb
for mode, environment in json.load(sys.stdin):
    if os.fork() == 0:  # each starts as the first does, without importing all of it again
        os.environ |= environment
        try:
            print(WandbLogger(WandbSettings("hover", mode)).check(Path("runs")), flush=True)
        except RetrievalError as error:
            print(type(error).__name__, error, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture
def port() -> Iterator[int]:
    """Of a socket that takes connections while the test runs."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def said(home: Path, *cases: tuple[str | None, dict[str, str]]) -> list[str]:
    """What is found out of each mode and further environment."""
    left = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_") and "proxy" not in key.lower()}
    clean = left | {"HOME": str(home), "NETRC": str(home / "none")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=clean, cwd=home, input=json.dumps(cases), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def closed() -> str:
    """The address of a port that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_where_runs_go_depends_on_key_mode_and_server(tmp_path: Path, port: int) -> None:
    server, away, key = f"http://127.0.0.1:{port}", closed(), {"WANDB_API_KEY": LOGIN}
    no_key, offline, usual, online, unreached, refused, behind_proxy = said(
        tmp_path,
        (None, {}),
        ("offline", key),
        (None, key | {"WANDB_BASE_URL": server}),
        ("online", key | {"WANDB_BASE_URL": server}),
        (None, key | {"WANDB_BASE_URL": away}),
        ("online", key | {"WANDB_BASE_URL": away}),
        (None, key | {"WANDB_BASE_URL": away, "http_proxy": "http://127.0.0.1:9"}),
    )
    place = "runs go to runs/wandb, for wandb sync"
    assert no_key == f"Weights & Biases: no API key is configured; {place}"
    assert offline == f"Weights & Biases: offline, as requested; {place}"
    assert usual == online == f"Weights & Biases: online, at {server}; runs go to project hover"
    assert unreached == f"Weights & Biases: {away} cannot be reached; {place}"
    assert refused.startswith(f"OutputError wandb.mode is online, and {away} cannot be reached; check the network")
    assert "online, at" in behind_proxy, "a proxy is trusted to know the server"
