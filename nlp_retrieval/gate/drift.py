"""How far a log of today's questions has drifted from the queries of a baseline: a note, which decides nothing.

Both figures stand beside what they would be without drift: many words of any new question are rare, so the share of new words
stands beside that of each of the baseline's queries in the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.errors import SourceError
from nlp_retrieval.judging.query_log import sample_log
from nlp_retrieval.reports import counted
from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.surfaces import words_of

_SAMPLE = 200
_LOW = 0.05


def drift_of_log(
    path: Path,
    column: str | None,
    seed: int,
    texts: Sequence[str],
    results: Sequence[Sequence[RetrievalResult]],
    search: Callable[[list[str]], Sequence[Sequence[RetrievalResult]]],
) -> Iterator[str]:
    """Yield notes on the questions of a log beside the queries of a baseline.

    Args:
        path: the log, of which 200 questions are drawn.
        column: with the question; None for one of the usual names.
        seed: of the draw.
        texts: of the baseline's queries.
        results: of these, by the searcher that is checked.
        search: searches questions with it.

    Raises:
        SourceError: the log cannot be read, has no such column, or holds no question.
    """
    try:
        asked = [query.text for query in sample_log(path, _SAMPLE, seed=seed, column=column).queries]
    except SourceError as error:
        if "column" not in str(error):
            raise
        raise SourceError(f"{error}; in a gate's file, that column is log_column") from None
    words = [_words(text) for text in texts]
    in_queries = Counter(word for own in words for word in own)
    new = _share([word not in in_queries for text in asked for word in _words(text)])
    expected = _share([in_queries[word] < 2 for own in words for word in own])
    yield (
        f"{path}: {new:.0%} of the words of {counted(len(asked), 'drawn question')} are in none of the baseline's queries; of "
        f"each of these, {expected:.0%} are in none of the others"
    )
    best, best_before = (np.array([hits[0].score if hits else -np.inf for hits in each]) for each in (search(asked), results))
    low = np.quantile(best_before, _LOW, method="inverted_cdf")
    yield (
        f"{path}: {_share(best == -np.inf):.0%} of the drawn questions found nothing, and {_share(best < low):.0%} score below "
        f"{low:.3g}, as {_share(best_before < low):.0%} of the baseline's queries do"
    )


def _words(text: str) -> set[str]:
    return {word for word in map(str.casefold, words_of(text)) if word not in FUNCTION_WORDS}


def _share(values: Sequence[bool] | np.typing.NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
