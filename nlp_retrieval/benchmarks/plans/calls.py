"""How often language models will be asked, as far as components tell: an upper estimate, answers on disk not considered.

Equal queries are asked about once, and a query without a word in it is not asked about. Retries come on top.
"""

from __future__ import annotations

from collections.abc import Sequence

from nlp_retrieval.core.components.component import Component, canonical_json
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.processors.compiled import CompiledProcessor

__all__ = ["asking_parts", "queries_that_ask"]


def asking_parts(searcher: Component) -> dict[str, Component]:
    """Return the parts of a searcher that ask language models, by a text that those share that ask the same questions."""
    parts: list[Component] = [searcher]
    if isinstance(searcher, Searcher):
        parts = [part for part in (searcher.processor, *searcher.retrievers.values(), searcher.reranker) if part is not None]
    return {_questions_of(part, searcher): part for part in parts if part.calls_per_query() != 0}


def queries_that_ask(texts: Sequence[str]) -> int:
    """Return how many different queries have something to say; the others are not asked about."""
    return len({text for text in texts if not has_no_words(text)})


def _questions_of(part: Component, searcher: Component) -> str:
    """What decides the questions: how many phrases are kept of an answer does not; what a reranker is given does."""
    if isinstance(part, BaseReranker):
        return canonical_json(searcher.config)
    if isinstance(part, CompiledProcessor):
        program = part.compiled.fingerprint if part.compiled is not None else None
        return canonical_json({"name": part.name, "lm": part.lm.config, "program": program})
    return canonical_json(part.config)
