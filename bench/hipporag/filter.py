"""The filter of facts by a local model: ``python -m bench.hipporag.filter DATA MODEL CHAT_MODEL BASE_URL [MINUTES]``.

It writes a section of ``bench/HIPPORAG.md``. MODEL is an encoder, CHAT_MODEL (``openai/<model>``) and BASE_URL name a language
model and its server. Questions are asked one after another, in an order drawn once, up to 50 or until the minutes are over.
Answers are not kept between runs, so that the minutes are those of asking.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections import Counter
from functools import cached_property
from pathlib import Path

import numpy as np

from bench.common import Data
from bench.evidence.speed_page import write_section
from bench.hipporag.nested import measures
from bench.sweeps import Figures, language_model
from bench.writing import table, words
from nlp_retrieval import BeirLoader, LanguageModel, RetrievalError, Searcher
from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever, Kept, TripleFilter

_HERE = Path(__file__).parent
PAGE = _HERE.parent / "HIPPORAG.md"
TITLE = "The filter of facts"
_MOST = 50
_K = 5
_OFF, _ON, _DRAWN, _DENSE = "all 5 facts", "those that the model keeps", "as many, drawn at random", "none: dense alone"


class Chosen(HippoRagRetriever):
    """HippoRAG 2 over the index of the real one, with facts kept by a function."""

    name = "hipporag-chosen"
    keep: Kept

    @property
    def identity(self) -> Config:
        return super().index_identity() | {"name": HippoRagRetriever.name}

    def _helpful(self, queries: list[str], shown: list[Rows]) -> list[Rows]:
        return self.keep(queries, shown)


class Study:
    """Rankings with and without the filter.

    Args:
        data: holds the corpus and its triples.
        encoder: of the index.
        lm: the model that filters.
        minutes: after which no further question is asked.
    """

    def __init__(self, data: Data, encoder: str, lm: LanguageModel, minutes: float) -> None:
        self.corpus, self.lm = BeirLoader(str(data.root / "musique")), lm
        index, knowledge = data.work / "hipporag-index", str(data.root / "musique" / "openie.jsonl")
        Searcher([HippoRagRetriever(encoder, knowledge)]).index(self.corpus, index)
        generation = open_generation(index)
        self.opened, self.items = Chosen(encoder, knowledge).open(generation), generation.items
        self.kept: list[int | None] = []
        self.lists: dict[str, list[Rows]] = {_OFF: [], _ON: [], _DRAWN: [], _DENSE: []}
        questions = np.random.default_rng(0).permutation(len(self.corpus.queries()))[:_MOST]
        self.seconds = 0.0
        for number in questions.tolist():
            if self.seconds > 60 * minutes:
                break
            self._ask(self.corpus.queries()[number].text)
            print(len(self.kept), self.kept[-1], f"{self.seconds:.0f} s", flush=True)
        self.questions = questions[: len(self.kept)].tolist()

    def _ask(self, question: str) -> None:
        helpful: list[Rows] = []

        def asked(queries: list[str], shown: list[Rows]) -> list[Rows]:
            helpful.extend(shown + TripleFilter(self.lm).kept(self.opened._graph_of_index, queries, shown))
            return helpful[1:]

        degraded, begin = self.lm.counts.degraded, time.perf_counter()
        self._search(_ON, question, asked)
        self.seconds += time.perf_counter() - begin
        shown, chosen = helpful
        drawn = np.sort(np.random.default_rng(len(self.kept)).permutation(shown)[: len(chosen)])
        self._search(_OFF, question, lambda _, shown: shown)
        self._search(_DRAWN, question, lambda _, __: [drawn])
        self._search(_DENSE, question, lambda _, __: [shown[:0]])
        self.kept.append(None if self.lm.counts.degraded > degraded else len(chosen))

    def _search(self, name: str, question: str, keep: Kept) -> None:
        self.opened.keep = keep
        self.lists[name].append(self.opened.search_batch([question], _K, None).rows)

    @cached_property
    def figures(self) -> Figures:
        """Measures by system, over the questions that were asked."""
        judged = self.corpus.gold()
        gold = [
            self.items.rows_of([key for key, grade in judged[number].relevance.items() if grade > 0])
            for number in self.questions
        ]
        families: list[str | None] = [self.corpus.queries()[number].family for number in self.questions]
        return Figures({name: measures(lists, gold) for name, lists in self.lists.items()}, families, families, {})


def write(data: Data, encoder: str, model: str, base_url: str, minutes: float) -> None:
    """Measure, and write the section."""
    with tempfile.TemporaryDirectory() as answers:
        settings = language_model(data, model, base_url, max_tokens=128, calls_at_once=1, cache_dir=answers)
        study = Study(data, encoder, LanguageModel(**settings), minutes)
    figures, counts = study.figures, study.lm.counts
    names = list(measures([], []))
    rows = {
        name: [figures.cell(name, measure) for measure in names]
        + ["-" if name == _OFF else figures.gain(name, _OFF, "recall@5")]
        for name in study.lists
    }
    kept = Counter(study.kept)
    write_section(
        PAGE,
        TITLE,
        (_HERE / "filter.md").read_text("utf-8"),
        model=model,
        n=len(study.kept),
        of=len(study.corpus.queries()),
        minutes=f"{study.seconds / 60:.1f}",
        seconds=f"{study.seconds / len(study.kept):.1f}",
        tokens_in=f"{counts.tokens_in:,}",
        tokens_out=f"{counts.tokens_out:,}",
        unusable=kept.pop(None, 0),
        kept=", ".join(f"{count} for {number}" for count, number in sorted(kept.items(), key=str)),
        table=table(["", *map(words, names), "recall@5 minus all 5 facts"], rows),
    )


def main(arguments: list[str]) -> int:
    """Measure, and write the section."""
    if len(arguments) not in (4, 5) or not (Path(arguments[0]) / "musique" / "openie.jsonl").is_file():
        print("usage: python -m bench.hipporag.filter DATA MODEL CHAT_MODEL BASE_URL [MINUTES]   (DATA holds musique/)")
        return 2
    warnings.simplefilter("ignore")
    data, encoder, model, base_url, *minutes = arguments
    try:
        write(Data.of(data), encoder, model, base_url, float(minutes[0]) if minutes else 25.0)
    except RetrievalError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
