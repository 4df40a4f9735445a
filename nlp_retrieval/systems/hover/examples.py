"""HoVer's claims as DSPy examples, and a split that keeps claims of one source on one side."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nlp_retrieval import Gold, HoverLoader, Query
from nlp_retrieval.errors import ConfigurationError, GoldError
from nlp_retrieval.lm import dspy


def hover_examples(path: str | Path, hops: Sequence[int] | None = (3,)) -> list[Any]:
    """Read claims from a HoVer release file.

    Args:
        path: as :class:`~nlp_retrieval.loaders.datasets.HoverLoader` takes it.
        hops: keep only claims with these numbers of hops; None for all.

    Returns:
        ``dspy.Example`` objects with the input ``claim`` and with ``gold_titles``, ``query_id`` and ``family``.

    Raises:
        SourceError: the file is missing or malformed, or no claim is kept.
    """
    loader = HoverLoader(path, hops=list(hops) if hops is not None else None)
    return examples_of(loader.queries(), loader.gold())


def examples_of(queries: Sequence[Query], gold: Sequence[Gold]) -> list[Any]:
    """Make examples of judged queries whose gold names titles.

    Raises:
        GoldError: a query has no gold, or gold that is keyed by item id.
    """
    by_id = {one.query_id: one for one in gold}
    examples = []
    for query in queries:
        one = by_id.get(query.query_id)
        titles = [key for key, grade in one.relevance.items() if grade > 0] if one is not None else []
        if one is None or one.by != "title" or not titles:
            raise GoldError(f"query {query.query_id!r} has no gold by title; programs are judged by titles")
        example = dspy.Example(claim=query.text, gold_titles=titles, query_id=query.query_id, family=query.family)
        examples.append(example.with_inputs("claim"))
    return examples


def split_by_family(examples: Sequence[Any], share: float = 0.5, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Split examples so that those of one ``family`` (HoVer's ``hpqa_id``) are never on both sides.

    Args:
        examples: one without a family is a family by itself.
        share: of the families on the first side, between 0 and 1.
        seed: of the assignment.

    Returns:
        The two sides, each in the order of ``examples``, neither empty.

    Raises:
        ConfigurationError: ``share`` is out of range, or there are fewer than two families.
    """
    if not 0 < share < 1:
        raise ConfigurationError(f"share={share}; it must lie between 0 and 1")
    families = [number if example.get("family") is None else example.family for number, example in enumerate(examples)]
    distinct = sorted(set(families), key=repr)
    if len(distinct) < 2:
        raise ConfigurationError(f"{len(distinct)} families of examples cannot be split; give more examples")
    random.Random(seed).shuffle(distinct)  # noqa: S311 -- a split, no secret
    first = set(distinct[: min(max(1, round(share * len(distinct))), len(distinct) - 1)])
    sides: tuple[list[Any], list[Any]] = ([], [])
    for family, example in zip(families, examples, strict=True):
        sides[family not in first].append(example)
    return sides
