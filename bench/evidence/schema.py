"""Requests drawn from the service's own schema: ``python -m bench.evidence.schema SCHEMATHESIS [SECONDS] [PAGE]``.

SCHEMATHESIS is the command of that name (``pip install schemathesis`` in an environment of its own), SECONDS how long each of
the two services is asked, 120 by default. It draws requests that the schema allows and others, and looks for errors of the
server and answers that are not what the schema says. That a request of the right shape is refused with 422 is none: no schema
says which addresses, dates and filters can be used.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.evidence.load import served
from bench.evidence.speed_page import PAGE, write_section
from bench.writing import table
from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex

_SETTINGS = """[checks]
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422"]
"""
_TEXT = """Requests drawn by $version from `/openapi.json` for $seconds seconds each, and what was wrong with the answers:
errors of the server; a status, a type or a shape that the schema does not describe; requests against it that were taken.
`python -m bench.evidence.schema SCHEMATHESIS $seconds`, $date, $machine.

$table"""


def main(arguments: list[str]) -> int:
    """Ask both services, and write the section; 1 where something was found."""
    if not arguments:
        print("usage: python -m bench.evidence.schema SCHEMATHESIS [SECONDS] [PAGE]")
        return 2
    command, seconds = arguments[0], int((arguments[1:] or ["120"])[0])
    rows: dict[str, list[str]] = {}
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "schemathesis.toml").write_text(_SETTINGS)
        text = "The Danube flows through Vienna."
        with EvidenceIndex(folder / "project", Searcher([Bm25Retriever()])) as index:
            index.add_document(text, "https://rivers.example/danube")
            index.build_index()
        Searcher([Bm25Retriever()]).index([SearchableItem(item_id="danube", content=text)], folder / "index")
        for kind in ("project", "index"):
            process, port = served(folder / kind, [])
            try:
                made, found = _asked(command, folder, f"http://127.0.0.1:{port}/openapi.json", seconds)
            finally:
                process.terminate()
                process.wait(60)
            rows[kind] = [made, str(found)]
            wrong += found
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    version = version.replace("st, version", "schemathesis")
    path = Path(arguments[2]) if len(arguments) > 2 else PAGE
    shown = table(["served", "requests", "found"], rows)
    write_section(path, "Requests drawn from the schema", _TEXT, version=version, seconds=seconds, table=shown)
    return int(wrong > 0)


def _asked(command: str, folder: Path, schema: str, seconds: int) -> tuple[str, int]:
    """How many requests were made, and how many failures were found; what was found is printed."""
    asking = [
        command,
        "--config-file",
        str(folder / "schemathesis.toml"),
        "run",
        schema,
        "--max-time",
        str(seconds),
        "--no-color",
    ]
    done = subprocess.run([*asking, "--seed", "1"], capture_output=True, text=True, cwd=folder, check=False)
    made = re.search(r"([\d,]+) generated", done.stdout)
    failures = re.search(r"([\d,]+) unique failures", done.stdout)
    if made is None or (done.returncode and failures is None):
        raise SystemExit(done.stdout + done.stderr)
    if failures:
        print(done.stdout, file=sys.stderr)
    return f"{int(made[1].replace(',', '')):,}", int(failures[1].replace(",", "")) if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
