"""How often language models will be asked, as far as a configuration tells: an upper estimate, answers on disk not considered.

A processor that asks does so once for each query with a word in it, equal queries once; behind others in a chain once for each
of their sub-queries. A multi-hop program asks for a summary and a query between every two hops. Retries come on top. What other
components ask is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nlp_retrieval.benchmarks.plans.models import components_in
from nlp_retrieval.core.components.component import Component, canonical_json
from nlp_retrieval.core.components.interfaces import BaseUserQueryProcessor
from nlp_retrieval.core.queries import says_nothing
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.pipelines.hover.searcher import MultiHopSearcher
from nlp_retrieval.processors.chain import Chain
from nlp_retrieval.processors.claim_decomposition import ClaimDecomposition
from nlp_retrieval.processors.clauses import ClauseSplit
from nlp_retrieval.processors.compiled import CompiledProcessor
from nlp_retrieval.processors.entity_phrases import EntityPhrases
from nlp_retrieval.processors.hyde import HyDE
from nlp_retrieval.processors.keyword_expansion import KeywordExpansion

__all__ = ["asking_parts", "calls_per_query", "queries_that_ask"]


def asking_parts(searcher: Component) -> dict[str, Component]:
    """Return the parts of a searcher that ask language models, by a text that those share that ask the same questions."""
    if not isinstance(searcher, Searcher):
        return _keyed([searcher])
    beside = [*searcher.retrievers.values(), *filter(None, [searcher.reranker])]
    return _keyed([*filter(None, [searcher.processor]), *beside])


def calls_per_query(part: Component) -> int | None:
    """Return how many calls a part makes for one query at most; None where that is not known."""
    if not _asks(part):
        return 0
    if isinstance(part, CompiledProcessor):
        return 1
    if isinstance(part, MultiHopSearcher):
        return 2 * (part.hops - 1)
    if isinstance(part, Chain):
        calls = 0
        for place, processor in enumerate(part.processors):
            asked, each = _most_subqueries(part.processors[:place]), calls_per_query(processor)
            if each is None or (each and asked is None):
                return None
            calls += each * (asked or 0)
        return calls
    return None


def queries_that_ask(texts: Sequence[str]) -> int:
    """Return how many different queries have something to say; the others are not asked about."""
    return len({text for text in texts if not says_nothing(text)})


def _keyed(parts: Sequence[Component]) -> dict[str, Component]:
    return {_questions_of(part): part for part in parts if _asks(part)}


def _questions_of(part: Component) -> str:
    """What decides the questions: how many phrases are kept of an answer does not."""
    if isinstance(part, ClaimDecomposition | HyDE):
        program = part.compiled.fingerprint if part.compiled is not None else None
        return canonical_json({"name": part.name, "lm": part.lm.config, "program": program})
    return canonical_json(part.config)


def _asks(component: Component) -> bool:
    return any(isinstance(part, LanguageModel) for part in components_in(component))


def _most_subqueries(processors: Sequence[BaseUserQueryProcessor]) -> int | None:
    """How many sub-queries come of one query at most when processors work one after another; None where it is not known."""
    each = [_most_subqueries_of(processor) for processor in processors]
    known = [most for most in each if most is not None]
    return prod(known) if len(known) == len(each) else None


def _most_subqueries_of(processor: BaseUserQueryProcessor) -> int | None:
    if isinstance(processor, Chain):
        return _most_subqueries(processor.processors)
    if isinstance(processor, ClauseSplit):
        return processor.max_clauses + processor.keep_query
    if isinstance(processor, EntityPhrases | ClaimDecomposition):
        return processor.max_phrases + processor.keep_query
    if isinstance(processor, HyDE | KeywordExpansion):
        return 1 + processor.keep_query
    return None
