"""PyTerrier's transformers as retrievers and rerankers of a searcher, and a searcher as a transformer of PyTerrier."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np

from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import DependencyError, EngineError

try:
    import pandas as pd
    import pyterrier as pt
except ImportError:
    raise DependencyError("a searcher in PyTerrier needs pyterrier: pip install python-terrier") from None


class _OfTransformer:
    """What a retriever and a reranker of PyTerrier share: a transformer, which only this process knows."""

    only_in_memory = True
    transformer: Any

    def __init__(self, known_as: str) -> None:
        del known_as

    @classmethod
    def of(cls, transformer: Any) -> Self:
        """Make a component of a ``pt.Transformer``, or of a pipeline of several."""
        made = cls(f"{transformer!r:.80} {uuid4().hex[:12]}")
        made.transformer = transformer
        return made

    def extra_state(self) -> dict[str, Any]:
        return {"transformer": self.transformer}

    def __deepcopy__(self, memo: object) -> Self:
        return copy.copy(self)  # a transformer may hold an index in Java

    def _ranked(self, frame: pd.DataFrame, n_queries: int) -> list[list[tuple[str, float]]]:
        """Return the transformer's hits for the queries "0", "1", ..., best first, in the order of their ranks."""
        output = self.transformer.transform(frame)
        if missing := {"qid", "docno", "score"} - set(output.columns):
            raise EngineError(
                f"{self.transformer!r:.80} returned no column {', '.join(sorted(missing))}; it must rank documents"
            )
        columns = ["score", *(["rank"] if "rank" in output.columns else [])]
        output = output.sort_values(columns, ascending=[False, True][: len(columns)], kind="stable")
        lists: list[list[tuple[str, float]]] = [[] for _ in range(n_queries)]
        for qid, docno, score in zip(output["qid"], output["docno"], output["score"], strict=True):
            lists[int(qid)].append((str(docno), float(score)))
        return lists


class PyTerrierRetriever(_OfTransformer, BaseRetriever):
    """A transformer that turns queries into ranked documents, as a retriever; its docnos are the ids of the items.

    It searches its own index, of the same items. Terrier reads queries in its query language: begin the pipeline with
    ``pt.rewrite.tokenise()``.

    Examples:
        >>> searcher = Searcher([PyTerrierRetriever.of(bm25), "faiss"])  # doctest: +SKIP
    """

    name = "pyterrier"

    def retrieve(self, processed_queries: list[list[str]], output_path: Path, k: int) -> Any:  # type: ignore[override]
        """Rank documents for queries of one sub-query each."""
        del output_path
        texts = [subqueries[0] for subqueries in processed_queries]
        frame = pd.DataFrame({"qid": [str(number) for number in range(len(texts))], "query": texts})
        return [hits[:k] for hits in self._ranked(frame, len(texts))]


class PyTerrierReranker(_OfTransformer, BaseReranker):
    """A transformer that scores the documents of queries, as a reranker; it gets ``text`` and ``title`` of each.

    Examples:
        >>> searcher = Bm25Retriever() % 100 >> PyTerrierReranker.of(mono_t5)  # doctest: +SKIP
    """

    name = "pyterrier"

    def rerank(self, nlqs: list[str], results: list[list[RetrievalResult]], k: int) -> Any:
        """Reorder the results of each query."""
        rows = [
            (str(number), nlqs[number], hit.item.item_id, hit.item.content, hit.item.title, rank, hit.score)
            for number, hits in enumerate(results)
            for rank, hit in enumerate(hits)
        ]
        frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "title", "rank", "score"])
        return [hits[:k] for hits in self._ranked(frame, len(nlqs))]


class PyTerrierTransformer(pt.Transformer):
    """A searcher with an opened index as a transformer: queries in, ranked documents out, for ``pt.Experiment`` and pipelines.

    Args:
        searcher: a searcher with an opened index.
        num_results: at most this many documents per query.
        where: a filter; see :mod:`nlp_retrieval.core.filters`.
        text: whether the documents have their ``text`` and ``title``, which rerankers of PyTerrier read.

    Examples:
        >>> pt.Experiment([PyTerrierTransformer(searcher)], topics, qrels, ["ndcg_cut_10"])  # doctest: +SKIP
    """

    def __init__(
        self, searcher: BaseSearcher, num_results: int = 1000, where: Where | None = None, *, text: bool = False
    ) -> None:
        super().__init__()
        self.searcher, self.num_results, self.where, self.text = searcher, num_results, where, text

    def __repr__(self) -> str:
        return f"PyTerrierTransformer({self.searcher!r}, {self.num_results})"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Return a row per document, with ``docno``, ``rank`` from 0 and ``score``, beside the columns of the topics."""
        pt.validate.query_frame(inp, extra_columns=["query"])
        topics = inp.reset_index(drop=True)
        pairs = list(zip(topics["qid"].astype(str), topics["query"], strict=True))
        lists = self.searcher.search(pairs, self.num_results, where=self.where) if pairs else []
        hits = [result for listed in lists for result in listed]
        output = topics.loc[np.repeat(np.arange(len(topics)), [len(listed) for listed in lists])].reset_index(drop=True)
        output["docno"] = [hit.item.item_id for hit in hits]
        output["rank"] = [rank for listed in lists for rank in range(len(listed))]
        output["score"] = [hit.score for hit in hits]
        if self.text:
            output["text"], output["title"] = [hit.item.content for hit in hits], [hit.item.title for hit in hits]
        return output
