"""Passages whose triples are their sentences, and files of open information extraction about them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from nlp_retrieval import SearchableItem

Said = tuple[str, str, str]

NAMES = (
    *("Erik Hort", "Erik of Hort", "Montebello", "Rockland County", "Oslo", "Anna Lind", "Bergen"),
    *("Lake Mjosa", "Lake of Mjosa", "Karl Berg", "It", "Harbour"),
)
"""Some are almost the same, so that there are synonyms."""

VERBS = ("was born in", "is part of", "lies near", "painted", "borders")


def passage(item_id: str, *said: Said, title: str = "") -> SearchableItem:
    """A passage that says this, one sentence for each triple."""
    content = " ".join(f"{' '.join(triple)}." for triple in said) or "Nothing is said."
    return SearchableItem(item_id=item_id, content=content, metadata={"title": title} if title else {})


def said_by(item: SearchableItem) -> list[list[str]]:
    """The triples of such a passage, read from its sentences."""
    found = []
    for sentence in item.content.split("."):
        for verb in VERBS:
            subject, between, target = sentence.strip().partition(f" {verb} ")
            if between and subject and target:
                found.append([subject, verb, target])
                break
    return found


def openie_docs(said: Iterable[tuple[SearchableItem, list[list[str]]]]) -> str:
    """What passages say, in HippoRAG's format, in which passages are known by their text."""
    docs = [
        {
            "idx": item.item_id,
            "passage": "\n".join(part for part in (item.title, item.content) if part),
            "extracted_entities": [],
            "extracted_triples": triples,
        }
        for item, triples in said
    ]
    return json.dumps({"docs": docs})


def openie_file(path: Path, items: Iterable[SearchableItem], *, left_out: Sequence[str] = ()) -> str:
    """Write what passages say to a file."""
    path.write_text(openie_docs((item, said_by(item)) for item in items if item.item_id not in left_out), "utf-8")
    return str(path)


def random_passage(draw: random.Random, item_id: str) -> SearchableItem:
    """A passage of up to three triples over few names, so that passages share entities and triples."""
    said = [(draw.choice(NAMES), draw.choice(VERBS), draw.choice(NAMES)) for _ in range(draw.randrange(4))]
    return passage(item_id, *said, title=draw.choice(["", f"Page {item_id}"]))
