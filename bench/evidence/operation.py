"""A served project as those who run it see it: ``python -m bench.evidence.operation [SECONDS] [PAGE]``; 600 seconds by default.

The clients and the writer of :mod:`bench.evidence.load`, while the figures are read every five seconds, the readiness every
second, a process is killed at half the time, and the project is backed up. Afterwards the logs are parsed, the service is
started again, and the backup is served.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.client import HTTPConnection, HTTPException
from itertools import pairwise
from pathlib import Path

from bench.evidence.load import GROUP, SOURCES, Tally, load_facts, make_rivers, mixed, river, served
from bench.evidence.speed_page import PAGE, write_section
from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex

OPTIONS = ("--warm", "--log-format", "json")
_SCRAPED_EVERY, _PROBED_EVERY = 5.0, 1.0
_TEXT = """$clients clients and a writer for $seconds seconds against `nlp-retrieval serve --warm --log-format json` ($workers
processes, $threads threads each), which held $sources sources and got $added more; one process was killed by SIGKILL at half
the time. `python -m bench.evidence.operation $seconds`, $date, $machine.

$answers answers; failed: $errors; wrong or mixed: $wrong.

$table

- Ready $ready s after the start, and $again s after a restart. Of $probes readiness probes under load, $unready were not
  answered by 200.
- $scrapes reads of `/metrics`, $unread of them failed; the count of requests fell $fell times, also when the process was
  killed; the clients had $asked answers, and the figures count $counted.
- $lines lines of the log, all parsed as JSON; processes that it says died, and were started again: $restarts.
- The backup taken while $clients clients and the writer went on held $held sources, whole groups alone, and answered $alike of
  $checked searches as the project does."""


def _get(port: int, path: str) -> tuple[int, str, float]:
    """Status, body and seconds; status 0 for no answer."""
    begin = time.perf_counter()
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode(), time.perf_counter() - begin
    except (OSError, HTTPException):
        return 0, "", time.perf_counter() - begin
    finally:
        connection.close()


def _ready_after(port: int, begin: float) -> float:
    while _get(port, "/readyz")[0] != 200:
        time.sleep(0.02)
    return time.monotonic() - begin


def _requests(text: str) -> int:
    """Requests to the endpoints that clients use, over all statuses."""
    counts = [line for line in text.splitlines() if line.startswith("nlp_retrieval_requests_total{")]
    return int(sum(float(line.rpartition(" ")[2]) for line in counts if not any(f'"{p}"' in line for p in _PROBES)))


_PROBES = ("/metrics", "/livez", "/readyz")


def _back_up(project: Path, folder: Path) -> None:
    """As docs/SERVICE.md says."""
    graph = folder / "10_graph"
    graph.mkdir(parents=True)
    lock = project / "10_graph" / ".build.lock"
    subprocess.run(["flock", str(lock), "cp", "-a", str(project / "10_graph" / "index"), str(graph)], check=True)
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('VACUUM INTO ?', sys.argv[2:])"
    file = "10_graph/evidence.sqlite3"
    subprocess.run([sys.executable, "-c", code, str(project / file), str(folder / file)], check=True)


def main(arguments: list[str]) -> int:
    """Measure, and write the section; 1 where something was wrong."""
    seconds = float(arguments[0]) if arguments else 600.0
    page = Path(arguments[1]) if len(arguments) > 1 else PAGE
    tally, said, scrapes, probes = Tally(), list[str](), list[tuple[int, str, float]](), list[int]()
    with tempfile.TemporaryDirectory() as name:
        project, backup, figures = (Path(name) / part for part in ("project", "backup", "figures"))
        figures.mkdir()
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(figures)
        make_rivers(project)
        begin = time.monotonic()
        process, port = served(project, said, *OPTIONS)
        ready = _ready_after(port, begin)
        end, over = time.monotonic() + seconds, threading.Event()

        def scrape() -> None:
            while not over.wait(_SCRAPED_EVERY):
                scrapes.append(_get(port, "/metrics"))

        def probe() -> None:
            while not over.wait(_PROBED_EVERY):
                probes.append(_get(port, "/readyz")[0])

        def disturb() -> None:
            over.wait(max(0.0, end - seconds / 2 - time.monotonic()))
            os.kill(max(json.loads(line)["pid"] for line in list(said) if '"ready"' in line), signal.SIGKILL)
            over.wait(seconds / 4)
            _back_up(project, backup)

        threads = [threading.Thread(target=work) for work in (scrape, probe, disturb)]
        for thread in threads:
            thread.start()
        count, added = mixed(port, seconds, tally)
        over.set()
        for thread in threads:
            thread.join()
        last = _get(port, "/metrics")[1]
        process.terminate()
        process.wait(60)
        lines = [json.loads(line) for line in said]
        begin = time.monotonic()
        process, port = served(project, list[str](), *OPTIONS)
        again = _ready_after(port, begin)
        process.terminate()
        process.wait(60)
        held, alike, checked = _restored(project, backup)
        shutil.rmtree(backup)
    counts = [_requests(text) for status, text, _ in scrapes if status == 200]
    answered = sum(map(len, tally.seconds.values()))
    fell = sum(later < earlier for earlier, later in pairwise(counts))
    restarts = sum(line["message"].endswith("died") for line in lines)
    write_section(
        page,
        "A served project in operation",
        _TEXT,
        **load_facts(tally.seconds | {"metrics": [took for *_, took in scrapes]}, tally, seconds, count, added),
        ready=f"{ready:.1f}",
        again=f"{again:.1f}",
        probes=len(probes),
        unready=sum(status != 200 for status in probes),
        scrapes=len(scrapes),
        unread=len(scrapes) - len(counts),
        asked=f"{answered:,}",
        counted=f"{_requests(last):,}",
        lines=f"{len(lines):,}",
        restarts=restarts,
        fell=fell,
        held=f"{held:,}",
        alike=alike,
        checked=checked,
    )
    for error, times in Counter([*tally.errors, *tally.wrong]).most_common(8):
        print(f"{times} x {error}", file=sys.stderr)
    sound = not fell and restarts == 1 and alike == checked and not tally.wrong
    return int(not sound)


def _restored(project: Path, backup: Path) -> tuple[int, int, int]:
    """Sources of a backup, and how many searches it answers as the project does; an added group is there whole, or not."""
    with EvidenceIndex(project, Searcher([Bm25Retriever()])) as now, EvidenceIndex(backup, Searcher([Bm25Retriever()])) as then:
        then.build_index()
        urls = {source.url for source in then.sources()}
        if (len(urls) - SOURCES) % GROUP:
            raise SystemExit("the backup holds a part of a group")
        words = [river(number)[0].split()[1] for number in range(0, SOURCES, 10)]
        answers = [[[one.content for one in index.search(word, 3)] for word in words] for index in (now, then)]
        return len(urls), sum(first == second for first, second in zip(*answers, strict=True)), len(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
