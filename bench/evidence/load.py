"""A served project under load: ``python -m bench.evidence.load [SECONDS] [PAGE]``; 600 seconds by default.

32 clients search, verify, audit and look up while one more adds sources; each answer is compared with what is known of it. The
sources that are added come in groups of three, made searchable together: an answer that holds a part of a group mixes two
generations of the index. A second, shorter run without the writer stands beside the library, called directly.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from bench.evidence.speed_page import PAGE, milliseconds, write_section
from bench.writing import table
from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex

CLIENTS, THREADS, WORKERS = 32, 2, 2
SOURCES = 500
GROUP, BATCH = 3, 10
_MOST_GROUPS = 1_000
_SHARES = {"search": 0.55, "search a batch": 0.15, "verify": 0.15, "audit": 0.05, "passages": 0.05, "stats": 0.05}
_TEXT = """$clients clients for $seconds seconds against `nlp-retrieval serve` ($workers processes, $threads threads each) over
$sources sources, searched by bm25s; one more client added $added sources, three at a time, each time building. The clients
ran on the same machine. `python -m bench.evidence.load $seconds`, $date, $machine.

$answers answers; errors: $errors; wrong or mixed answers: $wrong.

$table

Searches alone, without the writer, for $short seconds: $service a second through the service from $clients clients, $library a
second from the library, called in one process by $threads threads."""


@dataclass
class Tally:
    """What clients were answered.

    Args:
        seconds: of each request, by kind.
        errors: statuses and messages that were no answers.
        wrong: answers that say what is not so.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class _Client:
    """One connection to the service."""

    def __init__(self, port: int, tally: Tally) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=120)
        self._tally = tally

    def ask(self, kind: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer; None where there was none."""
        begin = time.perf_counter()
        try:
            content = None if body is None else json.dumps(body)
            self._connection.request("GET" if body is None else "POST", path, content, {"content-type": "application/json"})
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            self._tally.errors.append(f"{kind}: {error!r}")
            return None
        self._tally.seconds[kind].append(time.perf_counter() - begin)
        if response.status != 200:
            self._tally.errors.append(f"{kind}: {response.status} {answer[:200].decode(errors='replace')}")
            return None
        return json.loads(answer)


def river(number: int) -> tuple[str, str]:
    """Return the text and the URL of a source."""
    return f"River number{number} is {number + 100} kilometres long.", f"https://rivers.example/{number}"


def _request(client: _Client, chance: random.Random, added: list[int], wrong: list[str]) -> None:
    """One request of a kind that is drawn, and whether its answer is right."""
    (kind,) = chance.choices(list(_SHARES), list(_SHARES.values()))
    text, url = river(chance.randrange(SOURCES))
    if kind == "search":
        answer = client.ask(kind, "/search", {"query": text.split()[1], "k": 3})
        right = answer is None or [(one["content"], one["url"]) for one in answer["passages"]] == [(text, url)]
    elif kind == "search a batch":
        batch, known = chance.randrange(added[0] // BATCH + 1), added[0]
        answer = client.ask(kind, "/search", {"query": f"batch{batch}", "k": GROUP * BATCH})
        right = answer is None or _is_whole(answer["passages"], batch, known)
    elif kind == "verify":
        answer = client.ask(kind, "/verify", {"claim": text})
        right = answer is None or answer["supporting_evidence"][0]["quote"] == text
    elif kind == "audit":
        report = f"{text} [1]\n\n## References\n\n[1] River. {url}\n"
        answer = client.ask(kind, "/audit", {"report": report})
        right = answer is None or [row["status"] for row in answer["citations"]] == ["PASS"]
    elif kind == "passages":
        found = client.ask("search", "/search", {"query": text.split()[1], "k": 1})
        answer = found and client.ask(kind, f"/passages/{found['passages'][0]['key']}")
        right = answer is None or [one["content"] for one in answer["passages"]] == [text]
    else:
        known = added[0]
        answer = client.ask(kind, "/stats")
        right = answer is None or answer["document_count"] >= SOURCES + GROUP * known
    if not right:
        wrong.append(f"{kind}: {str(answer)[:300]}")


def _is_whole(passages: list[dict[str, Any]], batch: int, known: int) -> bool:
    """Whether all of each group is there or nothing of it, and every group that was searchable before."""
    groups = [int(found[1]) for one in passages if (found := re.search(r"group(\d+)", one["content"]))]
    counts = {group: groups.count(group) for group in groups}
    due = range(batch * BATCH, min((batch + 1) * BATCH, known))
    return set(counts.values()) <= {GROUP} and counts.keys() >= set(due) and len(groups) == len(passages)


def _add(port: int, end: float, pause: float, tally: Tally, added: list[int]) -> None:
    """Add groups until the time is over; ``added[0]`` says how many can be found."""
    client = _Client(port, tally)
    while time.monotonic() < end and added[0] < _MOST_GROUPS:
        number = added[0]
        words = f"group{number} of batch{number // BATCH}"
        documents = [
            {"content": f"Basin {part} is in {words}.", "url": f"https://basins.example/{number}/{part}"}
            for part in range(GROUP)
        ]
        if client.ask("add", "/index", {"documents": documents}) is not None:  # otherwise the same again
            added[0] += 1
        time.sleep(pause)


def _until(end: float, act: Callable[[random.Random], None]) -> int:
    """Let all clients act until the time is over; how often they did."""

    def client(number: int) -> int:
        chance, count = random.Random(number), 0
        while time.monotonic() < end:
            act(chance)
            count += 1
        return count

    with ThreadPoolExecutor(CLIENTS) as pool:
        return sum(pool.map(client, range(CLIENTS)))


def _searches(port: int, seconds: float, tally: Tally) -> float:
    """Answered searches a second through the service."""
    clients = threading.local()

    def search(chance: random.Random) -> None:
        if not hasattr(clients, "one"):
            clients.one = _Client(port, tally)
        clients.one.ask("search alone", "/search", {"query": river(chance.randrange(SOURCES))[0].split()[1], "k": 3})

    begin = time.monotonic()
    count = _until(begin + seconds, search)
    return count / (time.monotonic() - begin)


def _direct(project: Path, seconds: float) -> float:
    """Searches a second of the library, in this process."""
    index, end = EvidenceIndex(project, Searcher([Bm25Retriever()])), time.monotonic() + seconds

    def worker(number: int) -> int:
        chance, count = random.Random(number), 0
        while time.monotonic() < end:
            index.search(river(chance.randrange(SOURCES))[0].split()[1], 3)
            count += 1
        return count

    with index, ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(worker, range(THREADS))) / seconds


def served(project: Path, said: list[str], *options: str) -> tuple[subprocess.Popen[str], int]:
    """Serve a project or an index; the process, and its port. What it says is taken down."""
    command = [str(Path(sys.executable).with_name("nlp-retrieval")), "serve", str(project), "--port", "0"]
    command += ["--workers", str(WORKERS), "--threads", str(THREADS), *(options or ("--log-level", "warning"))]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
        if found := re.search(r" on http://\S+:(\d+)", line):
            threading.Thread(target=said.extend, args=(process.stderr,), daemon=True).start()
            return process, int(found[1])
    raise SystemExit("the service did not start")


def mixed(port: int, seconds: float, tally: Tally) -> tuple[int, int]:
    """Return how many requests the clients made, and how many sources were added meanwhile."""
    added, clients, end = [0], threading.local(), time.monotonic() + seconds
    writer = threading.Thread(target=_add, args=(port, end, seconds / _MOST_GROUPS, tally, added))
    writer.start()

    def act(chance: random.Random) -> None:
        if not hasattr(clients, "one"):
            clients.one = _Client(port, tally)
        _request(clients.one, chance, added, tally.wrong)

    count = _until(end, act)
    writer.join()
    return count, GROUP * added[0]


def make_rivers(project: Path) -> None:
    """Make a project of SOURCES rivers."""
    with EvidenceIndex(project, Searcher([Bm25Retriever()])) as index:
        index.add_documents([dict(zip(("content", "url"), river(number), strict=True)) for number in range(SOURCES)])
        index.build_index()


def load_facts(took: dict[str, list[float]], tally: Tally, seconds: float, count: int, added: int) -> dict[str, Any]:
    """Return what a section says of the load: clients, answers, errors, and a table of the times of each kind of request."""
    rows = {
        kind: [f"{len(times):,}", f"{len(times) / seconds:,.1f}", *milliseconds(times)] for kind, times in sorted(took.items())
    }
    return {
        "clients": CLIENTS,
        "seconds": f"{seconds:g}",
        "workers": WORKERS,
        "threads": THREADS,
        "sources": SOURCES,
        "added": f"{added:,}",
        "answers": f"{count:,}",
        "errors": len(tally.errors),
        "wrong": len(tally.wrong),
        "table": table(("request", "answers", "a second", "median ms", "95% within ms"), rows),
    }


def main(arguments: list[str]) -> int:
    """Measure, and write the section; 1 where an answer was wrong."""
    seconds = float(arguments[0]) if arguments else 600.0
    path = Path(arguments[1]) if len(arguments) > 1 else PAGE
    short = min(30.0, max(2.0, seconds / 10))
    tally, said = Tally(), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        make_rivers(project)
        process, port = served(project, said)
        try:
            _searches(port, short, Tally())  # each process opens the index at its first search
            service = _searches(port, short, tally)
            count, added = mixed(port, seconds, tally)
        finally:
            process.terminate()
            process.wait(60)
        library = _direct(project, short)
    mixed_seconds = {kind: took for kind, took in tally.seconds.items() if kind != "search alone"}
    write_section(
        path,
        "A served project under load",
        _TEXT,
        **load_facts(mixed_seconds, tally, seconds, count, added),
        short=f"{short:g}",
        service=f"{service:,.0f}",
        library=f"{library:,.0f}",
    )
    for line in [*tally.errors[:5], *tally.wrong[:5], *said[-60:]]:
        print(line.rstrip(), file=sys.stderr)
    return int(bool(tally.errors or tally.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
