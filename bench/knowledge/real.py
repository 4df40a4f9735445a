"""Extraction by a real model: ``python -m bench.knowledge.real DATA MODEL BASE_URL [PASSAGES]`` writes ``bench/EXTRACTION.md``.

DATA holds ``musique/corpus.jsonl`` and ``musique/openie.jsonl``, which was published of the same passages. MODEL
(``openai/<model>``) and BASE_URL name a language model and its server. Store and answers are kept in the work folder, so that
a second run asks nothing, and so is ``read.tsv``: triples of both, mixed, for a person who writes ``right`` or ``wrong`` before
each without seeing whose it is. The page tells of what is judged there.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from bench.common import Data
from bench.sweeps import language_model, script
from bench.writing import page, shown, table
from nlp_retrieval import JsonlLoader, LanguageModel, SearchableItem
from nlp_retrieval.systems.hipporag.extraction import KnowledgeExtractor, extract_knowledge
from nlp_retrieval.systems.hipporag.knowledge import PassageKnowledge, Triple, phrase_of
from nlp_retrieval.systems.hipporag.sources import OpenIeFile
from nlp_retrieval.systems.hipporag.store import KnowledgeStore

_HERE = Path(__file__).parent
_PAGE = _HERE.parent / "EXTRACTION.md"
_READ = 60
_TOKENS = 384
_ALIKE = 0.7
_HEADS = "verdict", "passage", "triple", "text"

Other = TypeVar("Other")


def written(data: Data, arguments: list[str]) -> str:
    """Return the page."""
    model, base_url, size = arguments[0], arguments[1], int(arguments[2]) if arguments[2:] else 200
    corpus = JsonlLoader(data.root / "musique" / "corpus.jsonl", id_field="_id", content_field="text").load()
    items = random.Random(0).sample(corpus, min(size, len(corpus)))
    folder = data.work / "extraction" / re.sub(r"\W+", "-", f"{model} {len(items)}")
    folder.mkdir(parents=True, exist_ok=True)
    ran = folder / "run.json"
    extractor = KnowledgeExtractor(LanguageModel(**language_model(data, model, base_url, max_tokens=_TOKENS, retries=0)))
    with KnowledgeStore(str(folder / "store.db"), create=True) as store:
        if not ran.exists():
            done = extract_knowledge(items, store, extractor, commit_every=10)
            ran.write_text(json.dumps(done.to_dict() | {"per_minute": done.per_minute}), "utf-8")
        told = store.source(extractor.extraction.extraction_id).of(items)
    first = json.loads(ran.read_text("utf-8"))
    nothing = PassageKnowledge((), ())
    mine = [one or nothing for one in told]
    published = [one or nothing for one in OpenIeFile(data.root / "musique" / "openie.jsonl").of(items)]
    return page(
        (_HERE / "real.md").read_text("utf-8"),
        arguments=f"DATA MODEL BASE_URL {size}",
        model=model,
        n_items=f"{len(items):,}",
        n_unread=sum(one is None for one in told),
        **{name: f"{first[name]:,}" for name in ("extracted", "failed", "entities", "triples", "dropped")},
        per_minute=f"{first['per_minute']:.1f}",
        calls=f"{first['calls']['calls']:,}",
        tokens_in=f"{first['calls']['tokens_in']:,}",
        tokens_out=f"{first['calls']['tokens_out']:,}",
        alike=_ALIKE,
        tokens=_TOKENS,
        frequent=_frequent(mine),
        frequent_published=_frequent(published),
        compared=_compared(items, mine, published),
        read=_read(folder / "read.tsv", items, {"this model": mine, "published": published}),
    )


def _frequent(knowledge: list[PassageKnowledge]) -> str:
    predicates = Counter(triple.predicate for one in knowledge for triple in one.triples)
    ((predicate, count),) = predicates.most_common(1)
    return f'"{predicate}", in {count:,} of {predicates.total():,} triples'


def same_ends(triple: Triple, other: PassageKnowledge) -> bool:
    """Whether the other one ties the same two names, in either direction."""
    ends = {phrase_of(triple.subject), phrase_of(triple.object)}
    return any({phrase_of(one.subject), phrase_of(one.object)} == ends for one in other.triples)


def alike(triple: Triple, other: PassageKnowledge) -> bool:
    """Whether the other one has a statement with mostly the same words: F1 of the words of subject, predicate and object."""
    words = _words(triple)
    for one in other.triples:
        theirs = _words(one)
        if 2 * sum((words & theirs).values()) >= _ALIKE * (sum(words.values()) + sum(theirs.values())):
            return True
    return False


def _words(triple: Triple) -> Counter[str]:
    return Counter(phrase_of(f"{triple.subject} {triple.predicate} {triple.object}").split())


def _compared(items: Sequence[SearchableItem], mine: list[PassageKnowledge], published: list[PassageKnowledge]) -> str:
    elsewhere = [*published[1:], published[0]]
    rows = {}
    for name, measure in (("same two names", same_ends), ("mostly the same words", alike)):
        rows[name] = [_share(mine, published, measure), _share(mine, elsewhere, measure), _share(published, mine, measure)]
    texts = [f" {phrase_of(f'{item.title} {item.content}')} " for item in items]
    rows["subject and object stand in the passage"] = [
        *(_share(mine, one, stands) for one in (texts, [*texts[1:], texts[0]])),
        "-",
    ]
    heads = ("", "of this model's", "control: of another passage", "of the published ones")
    return table(heads, rows)


def stands(triple: Triple, text: str) -> bool:
    """Whether subject and object stand in a text, which is given as its words between spaces."""
    return all(f" {phrase_of(end)} " in text for end in (triple.subject, triple.object))


def _share(these: list[PassageKnowledge], others: list[Other], measure: Callable[[Triple, Other], bool]) -> str:
    """The share of triples of which the measure holds beside the others, the mean over passages that have any."""
    pairs = [(one, other) for one, other in zip(these, others, strict=True) if one.triples]
    values = [np.mean([measure(triple, other) for triple in one.triples]) for one, other in pairs]
    return shown(np.array(values), [None] * len(values))


def _read(file: Path, items: Sequence[SearchableItem], sources: dict[str, list[PassageKnowledge]]) -> str:
    """What a person said of triples whose source was hidden; the file to judge is written where it is missing."""
    drawn = [(name, item, triple) for name, all_of_it in sources.items() for item, triple in _drawn(items, all_of_it)]
    random.Random(1).shuffle(drawn)
    lines = ["\t".join(("", item.item_id, _shown(triple), f"{item.title}: {item.content}")) for _, item, triple in drawn]
    if not file.exists():
        file.write_text("\n".join(["\t".join(_HEADS), *lines]) + "\n", "utf-8")
    read = [line.split("\t") for line in file.read_text("utf-8").splitlines()[1:]]
    if [line[1:] for line in read] != [line.split("\t")[1:] for line in lines]:
        raise SystemExit(f"{file} was drawn from other triples; move it away")
    if not all(line[0] in ("right", "wrong") for line in read):
        return f"Not read yet: {file.name} in the work folder waits for verdicts."
    rows = {}
    for name in sources:
        right = np.array([line[0] == "right" for line, one in zip(read, drawn, strict=True) if one[0] == name], float)
        rows[name] = [str(len(right)), shown(right, [None] * len(right))]
    return table(("triples of", "read", "right"), rows)


def _drawn(items: Sequence[SearchableItem], knowledge: list[PassageKnowledge]) -> list[tuple[SearchableItem, Triple]]:
    every = [(item, triple) for item, one in zip(items, knowledge, strict=True) for triple in one.triples]
    return random.Random(0).sample(every, min(_READ, len(every)))


def _shown(triple: Triple) -> str:
    return " | ".join(" ".join(part.split()) for part in (triple.subject, triple.predicate, triple.object))


if __name__ == "__main__":
    sys.exit(
        script("bench.knowledge.real DATA MODEL BASE_URL [PASSAGES]", [2, 3], _PAGE, written, needs="musique/openie.jsonl")
    )
