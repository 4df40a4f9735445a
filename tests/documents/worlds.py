"""What the blocks of a page find: files that it speaks of, or a server for the address that it names."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import pytest
from chat_server import chat_server, fields
from postgres_server import admin_url

from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher
from nlp_retrieval.evidence import EvidenceIndex
from nlp_retrieval.systems.policy import functions

from .blocks import COMMAND, blocks, statements

ROOT = Path(__file__).parents[2]
Change = Callable[[str], str]
"""What a block becomes before it is run: an address in it may be another one here."""

TRAM = "The tram carried 2.4 million passengers in 2019."


def lines(path: str, *rows: dict[str, object]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def item(name: str, text: str, **metadata: object) -> dict[str, object]:
    return {"id": name, "title": name, "content": text, **metadata}


def index(path: str, *ids: str) -> None:
    items = [SearchableItem(item_id=one, content=f"The lighthouse number {one} stands at the harbour.") for one in ids]
    Searcher([Bm25Retriever()]).index(items, path)


def demo() -> None:
    Path("demo-output").mkdir()
    for name in ("corpus.jsonl", "claims.json"):
        with resources.as_file(resources.files("nlp_retrieval.demo") / name) as file:
            shutil.copy(file, Path("demo-output") / name)


def multihop() -> None:
    demo()
    lines("corpus.jsonl", item("1", "Ada Winter built the Long Bridge."), item("2", "The Long Bridge crosses the Rill."))


def evidence() -> None:
    Path("pages").mkdir()
    Path("pages/harbour.md").write_text("# The harbour\n\nThe harbour has four quays.\n", "utf-8")
    lines("more.jsonl", {"url": "https://rail.example/", "content": "The railway has 40 stations.", "quality": "B"})
    Path("claims.csv").write_text("id,claim\n1,The tram has 22 stops.\n")
    Path("sources.csv").write_text("file,canonical url,grade,title\npage.html,https://stats.example/again,B,Trams\n", "utf-8")
    Path("page.html").write_text(f"<html><title>Tram</title><body><p>{TRAM} It has 22 stops.</p></body></html>", "utf-8")
    Path("report.md").write_text("The railway has 40 stations [1].\n\n[1]: https://rail.example/\n", "utf-8")
    lines("judged.jsonl", {"claim": "The railway has 40 stations.", "url": "https://rail.example/"})
    pairs = [
        {
            "claim": f"The tram has {n} stops.",
            "passage": f"It has {n + wrong} stops.",
            "label": ("support", "contradict")[wrong],
        }
        for n in range(2, 22)
        for wrong in (0, 1)
    ]
    lines("pairs.jsonl", *pairs)


def names() -> None:
    demo()
    (script,) = (block for block in blocks((ROOT / "docs" / "POLICY.md").read_text("utf-8")) if block.language == "sh")
    for statement in statements(script.content):
        if not statement.startswith(COMMAND):
            subprocess.run(["sh", "-e", "-c", statement], check=True)
    page = (ROOT / "docs" / "HIPPORAG.md").read_text("utf-8")
    for file, content in re.findall(r"cat > (\S+) <<'END'\n(.*?)END\n", page, re.DOTALL)[:2]:
        Path(file).write_text(content, "utf-8")


def updates() -> None:
    index("indexes/wiki", "item-7", "item-8", "item-9", "item-10", "item-11")
    lines("more.jsonl", item("item-12", "A new ferry was built."))
    lines("changed.jsonl", item("item-8", "The lighthouse is dark."))
    Path("gone.txt").write_text("item-10\nitem-11\n", "utf-8")


def judging() -> None:
    lines("corpus.jsonl", *(item(f"{n}", f"Olbers saw comet {n} in 18{n:02}, near asteroid {n % 3}.") for n in range(30)))
    Path("questions.txt").write_text("".join(f"When did Olbers see comet {n}?\n" for n in range(12)))
    searchers = "{bm25: {retrievers: [bm25]}, low: {retrievers: [{name: bm25, k1: 0.2}]}}"
    Path("sweep.yaml").write_text(
        f"corpus: {{loader: jsonl, path: corpus.jsonl}}\nqueries: {{loader: topics, path: questions.txt, qrels: none}}\n"
        f"index: indexes/comets\nsearchers: {searchers}\n"
    )


def agents() -> None:
    lines("corpus.jsonl", *(item(name, f"The {name} eats.") for name in ("whale", "krill", "fox")))
    Path("gold.txt").write_text("q1 0 whale 1\nq1 0 krill 1\n")


def encoders() -> None:
    Path("indexes").mkdir()
    lines("corpus.jsonl", item("1", "Ada Winter built the Long Bridge."), item("2", "The Long Bridge crosses the Rill."))


def chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANS", admin_url())
    kenya = {"country": "Kenya", "document": "plan"}
    lines(
        "plans.jsonl",
        item("ke-2015-1", "The target is a third less by 2030.", **kenya),
        item("ke-2020-3", "The baseline is the year 2010.", **kenya),
    )


@contextmanager
def world(page: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Change]:
    """Make what a page needs in the working directory, and take it away again."""
    for variable in ("CO_API_KEY", "JINA_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "not-a-key-0123")
    files = {
        "README.md": demo,
        "MULTIHOP.md": multihop,
        "NAMES.md": names,
        "EVIDENCE.md": evidence,
        "UPDATES.md": updates,
        "AGENTS.md": agents,
        "JUDGING.md": judging,
        "GATE.md": demo,
        "ENCODERS.md": encoders,
    }
    if page in files:
        files[page]()
    if page == "SERVICE.md":
        index("indexes/wiki", "item-1")
        with EvidenceIndex("my-project", Searcher([Bm25Retriever()])) as project:
            project.add_document("The Danube flows through Vienna.", "https://example.org/danube")
            project.build_index()
    if page == "STORES.md":
        chunks(monkeypatch)
    if page == "NAMES.md":
        monkeypatch.setattr(functions, "_opened", {})
    if page == "ANSWERS.md":
        index("my-index", "d1", "d2")
        with chat_server(lambda body: fields(reasoning="r", citations="1.1", answer="Paris")) as server:
            yield lambda text: text.replace("http://localhost:8000/v1", server.url)
        return
    yield lambda text: text
