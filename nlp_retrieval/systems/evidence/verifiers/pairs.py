"""Judged pairs of claim and passage, and the examples that a model is trained on."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders import read_json_lines
from nlp_retrieval.systems.evidence.verifiers.base import Span, window_spans
from nlp_retrieval.text import sentences_of, words_of

Label = Literal["support", "contradict", "neutral", "not_support"]


@dataclass(frozen=True)
class JudgedPair:
    """A claim and a passage, judged by a person.

    Args:
        claim: a statement.
        passage: that may support it.
        label: "not_support" if it is unknown whether the passage contradicts the claim or is neutral.
        family: shared by pairs that must be on the same side of a split.
        rationale: spans of the passage's deciding sentences; empty if unknown.
        pair_id: for people.
        collection: the folder that the pair comes from.
    """

    claim: str
    passage: str
    label: Label
    family: str = ""
    rationale: tuple[Span, ...] = ()
    pair_id: str = ""
    collection: str = ""


def read_pairs(path: str | Path) -> list[JudgedPair]:
    """Read judged pairs from a file of JSON lines (``.gz`` too), or from such files in the folders of a folder.

    Args:
        path: a file; or a folder with one folder per collection, of which ``train.jsonl.gz`` or ``train.jsonl`` is read.

    Raises:
        SourceError: there is no such file, or a line is invalid.
    """
    source = Path(path)
    if source.is_dir():
        files = sorted([*source.glob("train.jsonl*"), *source.glob("*/train.jsonl*")])
        if not files:
            raise SourceError(f"{source} has no train.jsonl or train.jsonl.gz, nor has a folder in it; name a file")
    else:
        files = [source]
    return [_pair(row, where, file.parent.name) for file in files for where, row in read_json_lines(file)]


def _pair(row: dict[str, Any], where: str, collection: str) -> JudgedPair:
    for key in ("claim", "passage", "label"):
        if not isinstance(row.get(key), str):
            raise SourceError(f'{where}: no text "{key}" (found: {", ".join(map(repr, row))[:200]})')
    if row["label"] not in get_args(Label):
        raise SourceError(f"{where}: label {row['label']!r}; it must be one of {', '.join(get_args(Label))}")
    return JudgedPair(
        row["claim"],
        row["passage"],
        row["label"],
        f"{collection}/{row.get('family') or row['passage']}",
        _rationale(row, where),
        str(row.get("id") or where),
        collection,
    )


def _rationale(row: dict[str, Any], where: str) -> tuple[Span, ...]:
    sentences, numbers = row.get("sentences") or [], row.get("rationale") or []
    try:
        spans = [(int(begin), int(end)) for begin, end in sentences]
        chosen = tuple(spans[number] for number in numbers if number >= 0)
    except (TypeError, ValueError, IndexError) as error:
        raise SourceError(f"{where}: sentences and rationale do not fit ({error})") from None
    if any(not 0 <= begin <= end <= len(row["passage"]) for begin, end in chosen):
        raise SourceError(f"{where}: a sentence's span is outside the passage")
    return chosen


# Training examples: judged pairs as windows of sentences, and generated pairs.
#
# A model reads a claim with a window of neighbouring sentences, as a verifier does; the windows of a passage are judged
# together, so that it need not be known which of them decides. If the deciding sentences are annotated, they are also examples
# on their own, and other sentences of the passage are neutral.

_SHORT = 450


@dataclass(frozen=True)
class TrainingExample:
    """A claim, the texts that together decide it, and the judgement."""

    claim: str
    texts: tuple[str, ...]
    label: Label
    collection: str


def nearest_windows(claim: str, passage: str, most: int, size: int) -> list[Span]:
    """Return the windows of a passage that share most words with a claim, in order of the passage."""
    windows = window_spans(passage, size)
    if len(windows) <= most:
        return windows
    wanted = set(words_of(claim))
    shared = [-len(wanted & set(words_of(passage[begin:end]))) for begin, end in windows]
    chosen = sorted(range(len(windows)), key=lambda number: (shared[number], number))[:most]
    return [windows[number] for number in sorted(chosen)]


def examples_of(pairs: Iterable[JudgedPair], most_windows: int, size: int, rng: random.Random) -> list[TrainingExample]:
    """Return the examples of judged pairs; of a passage, windows with a deciding sentence are read first."""
    examples = []
    for pair in pairs:
        chosen = nearest_windows(pair.claim, pair.passage, most_windows, size)
        if pair.rationale:
            deciding = [
                span for span in window_spans(pair.passage, size) if any(_meet(span, sentence) for sentence in pair.rationale)
            ]
            chosen = sorted([*deciding, *(span for span in chosen if span not in deciding)][:most_windows])
        texts = [_text(pair, span) for span in chosen] or [_text(pair, (0, 0))]
        examples.append(TrainingExample(pair.claim, tuple(texts), pair.label, pair.collection))
        examples += _single_sentences(pair, rng)
    return examples


def _single_sentences(pair: JudgedPair, rng: random.Random) -> list[TrainingExample]:
    """Return a deciding sentence alone, with the pair's label, and another sentence, as neutral."""
    if not pair.rationale or pair.label not in {"support", "contradict"}:
        return []
    examples = []
    if len(pair.rationale) == 1:
        examples.append(TrainingExample(pair.claim, (_text(pair, pair.rationale[0]),), pair.label, pair.collection))
    others = [span for span in sentences_of(pair.passage) if not any(_meet(span, sentence) for sentence in pair.rationale)]
    if others and len(pair.rationale) < 3:
        examples.append(TrainingExample(pair.claim, (_text(pair, rng.choice(others)),), "neutral", pair.collection))
    return examples


def is_short(example: TrainingExample) -> bool:
    """Return whether an example is a claim with one short text."""
    return len(example.texts) == 1 and len(example.claim) + len(example.texts[0]) <= _SHORT


def held_out_families(pairs: Iterable[JudgedPair], share: float, seed: int) -> set[str]:
    """Return families that are held out for validation, the same share of each collection's, drawn by the seed."""
    families: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        families[pair.collection].add(pair.family)
    kept: set[str] = set()
    for collection, members in sorted(families.items()):
        order = sorted(members)
        random.Random(f"{seed}/{collection}").shuffle(order)  # noqa: S311  # nothing secret is drawn
        kept |= set(order[: max(1, round(share * len(order)))])
    return kept


def _text(pair: JudgedPair, span: Span) -> str:
    return pair.passage[span[0] : span[1]]


def _meet(first: Span, second: Span) -> bool:
    return first[0] < second[1] and second[0] < first[1]
