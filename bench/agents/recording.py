"""What recording costs: an MCP client asks 200 questions of three servers of one index in turns, one of which records.

The two that do not record show how far two equal servers differ. ``python -m bench.agents.recording DATA [ROUNDS]``
"""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bench.common import Data
from nlp_retrieval import BeirLoader, Searcher
from nlp_retrieval.agents import read_trajectories

QUESTIONS = 200
TOP = 10
NAMES = ("plain", "plain again", "recording")


class Server:
    """A server of the index over HTTP, in a process of its own."""

    def __init__(self, index: Path, *words: str) -> None:
        command = [
            sys.executable,
            "-m",
            "nlp_retrieval",
            "serve",
            str(index),
            "-r",
            "bm25",
            "--mcp-http",
            "--port",
            "0",
            *words,
        ]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.url = next(found[1] for line in self.process.stderr if (found := re.search(r" on (http://\S+)", line)))
        self.process.stderr.close()

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def ask(servers: list[Server], questions: list[str], rounds: int) -> np.ndarray:
    """Seconds of each call, by server; the order of the servers changes from question to question."""
    seconds: list[list[float]] = [[] for _ in servers]
    async with AsyncExitStack() as opened:
        clients = [await opened.enter_async_context(Client(streamable_http_client(f"{server.url}/mcp"))) for server in servers]
        for number, question in enumerate(questions * rounds):
            for place in range(len(servers)):
                chosen = (number + place) % len(servers)
                arguments = {"query": question, "k": TOP}
                names: Any = {"session_id": f"round-{number // len(questions)}"}
                begin = time.perf_counter()
                answer = await clients[chosen].call_tool("search", arguments, meta=names)
                seconds[chosen].append(time.perf_counter() - begin)
                assert not answer.is_error, answer
    return np.array(seconds)


def interval(differences: np.ndarray, base: float) -> str:
    """The median of paired differences as a share, with a 95% bootstrap interval."""
    generator = np.random.default_rng(0)
    drawn = [np.median(differences[generator.integers(0, len(differences), len(differences))]) for _ in range(2000)]
    low, high = np.quantile(drawn, [0.025, 0.975]) / base
    return f"{np.median(differences) / base:+.1%} [{low:+.1%}, {high:+.1%}]"


def main(arguments: list[str]) -> int:
    """Print the times of the three servers, and what was recorded."""
    data, rounds = Data.of(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 5
    index = data.work / "recording-index"
    Searcher(["bm25"]).index(BeirLoader(str(data.corpus)), index)
    questions = data.questions()[:QUESTIONS]
    with TemporaryDirectory(dir=data.work) as folder:
        record = str(Path(folder) / "sessions")
        servers = [Server(index, *words) for words in ([], [], ["--record", record])]
        try:
            asyncio.run(ask(servers, questions[:20], 1))  # a warm-up
            before = [server.cpu for server in servers]
            seconds = asyncio.run(ask(servers, questions, rounds))
            cpu = [(server.cpu - begin) / seconds.shape[1] for server, begin in zip(servers, before, strict=True)]
        finally:
            for server in servers:
                server.process.kill()  # nothing that was answered may be missing
                server.process.wait()
        n_bytes = sum(file.stat().st_size for file in Path(record).iterdir())
        trajectories = read_trajectories(record)
    asked = [step.query for trajectory in trajectories for step in trajectory.steps]
    assert sorted(asked) == sorted(questions * rounds + questions[:20])
    medians = np.median(seconds, axis=1)
    for name, median, own in zip(NAMES, medians, cpu, strict=True):
        print(f"{name}: median {median * 1000:.2f} ms a call, {own * 1000:.2f} ms of processor time")
    print(f"plain again - plain: {interval(seconds[1] - seconds[0], medians[0])}")
    plain = (seconds[0] + seconds[1]) / 2
    print(f"recording - plain: {interval(seconds[2] - plain, float(np.median(plain)))}")
    print(f"processor time, recording - plain: {cpu[2] / statistics.mean(cpu[:2]) - 1:+.1%}")
    print(f"{len(asked):,} steps, {n_bytes / len(asked):,.0f} bytes each; every answered call is there after kill -9")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
