"""What an extraction will do, before its first paid call: how many passages are missing, and what they will cost.

Tokens are estimated from characters: 4 a token in prompts, 3.3 in JSON. An answer is 1.8 times as long as its passage, as it is
in the published extraction from MuSiQue; a model with thoughts writes more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from nlp_retrieval import SearchableItem
from nlp_retrieval.systems.hipporag.knowledge import ExtractionRun, passage_text
from nlp_retrieval.text import printable

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks import ModelPrice
    from nlp_retrieval.systems.hipporag.extraction import KnowledgeExtractor
    from nlp_retrieval.systems.hipporag.store import KnowledgeStore

_PER_TOKEN, _PER_JSON_TOKEN = 4.0, 3.3
_ANSWER_PER_PASSAGE = 1.8
_LOOKED_UP_AT_ONCE = 500


@dataclass(frozen=True)
class ExtractionPlan:
    """What an extraction will do, known before its first call.

    Args:
        documents: in the corpus.
        missing: those of them that the store lacks.
        calls: of the model; fewer where texts repeat.
        tokens_in: of prompts, estimated.
        tokens_out: of answers, estimated.
        price: of these tokens; None without prices.
        interrupted: earlier sessions of this extraction that did not end.

    Examples:
        >>> print(ExtractionPlan(documents=9, missing=9, calls=9, tokens_in=4_000, tokens_out=1_200))
        9 of 9 passages to extract: 9 calls, about 4,000 tokens in prompts and 1,200 in answers
    """

    documents: int
    missing: int
    calls: int
    tokens_in: int
    tokens_out: int
    price: float | None = None
    interrupted: tuple[ExtractionRun, ...] = ()

    def __str__(self) -> str:
        price = "" if self.price is None else f"; price about {self.price:,.4f}"
        tokens = f"about {self.tokens_in:,} tokens in prompts and {self.tokens_out:,} in answers"
        work = f": {self.calls:,} calls, {tokens}{price}" if self.missing else ""
        return f"{self.missing:,} of {self.documents:,} passages to extract{work}"

    @property
    def notes(self) -> list[str]:
        """Return a sentence for each session that did not end."""
        return [
            f"session {run.session_id[:8]} was interrupted (or still runs elsewhere): last saved {run.saved}, "
            f"{run.processed:,} passages finished"
            + (f', the last "{printable(str(run.data["last_document"]))[:100]}"' if run.data.get("last_document") else "")
            for run in self.interrupted
        ]


def plan_extraction(
    items: Iterable[SearchableItem], store: KnowledgeStore, extractor: KnowledgeExtractor, price: ModelPrice | None = None
) -> ExtractionPlan:
    """Read a corpus, and return what must be extracted from it; the model is not called.

    Args:
        items: the corpus.
        store: of the knowledge.
        extractor: that will be used.
        price: of its model.

    Raises:
        SourceError: the store cannot be read.
    """
    source = iter(items)
    documents = missing = characters = 0
    while chunk := list(islice(source, _LOOKED_UP_AT_ONCE)):
        documents += len(chunk)
        for item, is_missing in zip(chunk, store.missing(extractor.extraction, chunk), strict=True):
            if is_missing:
                missing += 1
                characters += min(len(passage_text(item.title, item.content)), extractor.passage_characters)
    calls = math.ceil(missing / extractor.passages_per_call)
    tokens_in = round((calls * extractor.prompt_characters + characters) / _PER_TOKEN)
    tokens_out = round(_ANSWER_PER_PASSAGE * characters / _PER_JSON_TOKEN)
    spent = None if price is None else price.of(tokens_in, tokens_out)
    return ExtractionPlan(
        documents, missing, calls, tokens_in, tokens_out, spent, tuple(store.unfinished(extractor.extraction))
    )
