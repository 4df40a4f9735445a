"""Entities, sentences and passages without a language model: ``python -m bench.multihop.sentences DATA [SET ...]``.

Each collection is searched as it is and with its titles taken away, which is what most people's data is. The page,
``bench/SENTENCES.md``, keeps the tables of the sets that are not measured again.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.common import Data
from bench.multihop.fitting import Shuffled
from bench.sweeps import Figures, configured, read_sweep, run
from bench.writing import page, table, words
from nlp_retrieval import EntitySentencesRetriever, LinkGraphRetriever, Searcher
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.evaluation.bootstrap import family_numbers
from nlp_retrieval.retrievers import EntitySentences
from nlp_retrieval.retrievers.entity_sentences.graph.named_sentences import NamedSentences
from nlp_retrieval.retrievers.entity_sentences.graph.sentence_graph import SentenceGraph

SETS = {"musique": "musique", "hotpotqa": "wiki", "scifact": "scifact"}
_HERE = Path(__file__).parent
_PAGE = _HERE.parent / "SENTENCES.md"
_MEASURES = {"scifact": ("recall@2", "recall@5", "ndcg@10")}
_ENCODER = {"name": "sentence-transformers", "backend": "onnx"}
_QUESTIONS = ("recall@2", "recall@5", "perfect_recall@5")
_OWN, _LINKS, _RRF = "entity sentences", "link graph, entity sentences alone", "RRF of both"
_CHOSEN = "entity sentences, chosen in 5 folds"
_QUERY_ALONE = "entity sentences, entities of the query alone"
_SHUFFLED, _SHUFFLED_LINKS = "entity sentences, shuffled", "link graph, entity sentences alone, shuffled"
_AGAINST = {
    _OWN: ("dense", _RRF, _QUERY_ALONE, "entity sentences, no entities active", _SHUFFLED, "link graph, shared entities alone"),
    _CHOSEN: ("dense", _RRF, _SHUFFLED, "link graph"),
    _LINKS: ("link graph, no links", _SHUFFLED_LINKS, "link graph, shared entities alone"),
    "link graph, title mentions and entity sentences": ("link graph",),
    "link graph with entity sentences as a third seed": ("link graph",),
    "RRF of link graph and entity sentences": ("link graph",),
}
_FOLDS = 5


class ShuffledSentences(EntitySentencesRetriever):
    """The control: every sentence names what another does, so that entities have nothing to do with what sentences say."""

    name = "shuffled_sentences"

    @property
    def identity(self) -> Config:
        """That of what it controls, whose index it searches."""
        return EntitySentencesRetriever(self.seeds, encoder=self.encoder).identity

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        super().load_segments(segments)
        sentences = NamedSentences.open_all(segments)
        order = np.random.default_rng(0).permutation(len(sentences.names) - 1)
        counts = np.diff(sentences.names)
        parts = [sentences.hashes[sentences.names[one] : sentences.names[one + 1]] for one in order.tolist()]
        names = np.concatenate([[0], np.cumsum(counts[order])])
        self._graph = SentenceGraph.of(NamedSentences(sentences.sentences, names, np.concatenate(parts)), self._n_live)


def measured(data: Data, name: str, *, titled: bool) -> Figures:
    """Search one collection with all systems.

    Args:
        data: where it is.
        name: of :data:`SETS`.
        titled: with its titles, or without.
    """
    shape = "titled" if titled else "untitled"
    corpus = _collection(data, name, titled=titled)
    work = data.work / "sentences" / f"{name}-{shape}"
    settings = read_sweep(_HERE / "sentences.yaml", corpus=str(corpus), index=str(work / "index"), encoder=_ENCODER)
    config = configured(settings, work)
    both = ["bm25s", {"name": "faiss", "encoder": _ENCODER}]
    config.searchers[_SHUFFLED] = Searcher([ShuffledSentences(both)])
    config.searchers[_SHUFFLED_LINKS] = Searcher([LinkGraphRetriever(both, [Shuffled(EntitySentences(weight=0.1))])])
    return chosen(run(config, work))


def _collection(data: Data, name: str, *, titled: bool) -> Path:
    """A collection in BEIR's form; the passages of HotpotQA stand beside its questions, and titles may be left out."""
    source = data.root / SETS[name]
    queries = source / "hotpotqa" if name == "hotpotqa" else source
    if titled and queries == source:
        return source
    folder = data.work / "sentences" / "collections" / f"{name}-{'titled' if titled else 'untitled'}"
    shutil.copytree(queries, folder, dirs_exist_ok=True)
    with (
        (source / "corpus.jsonl").open(encoding="utf-8") as lines,
        (folder / "corpus.jsonl").open("w", encoding="utf-8") as kept,
    ):
        for line in lines:
            passage = json.loads(line)
            kept.write(json.dumps(passage if titled else passage | {"title": ""}, ensure_ascii=False) + "\n")
    return folder


def chosen(figures: Figures, measure: str = "recall@5") -> Figures:
    """Add a configuration: of the choices the best on the other folds, fold by fold; a family is never in two folds."""
    choices = sorted(name for name in figures.values if name.startswith("choice "))
    folds = np.random.default_rng(0).permutation(10_000)[family_numbers(figures.families) % 10_000] % _FOLDS
    values = {measure: np.zeros(len(folds)) for measure in figures.values[choices[0]]}
    for fold in range(_FOLDS):
        others = folds != fold
        best = max(choices, key=lambda name: float(figures.values[name][measure][others].mean()))
        for key, column in values.items():
            column[~others] = figures.values[best][key][~others]
    kept = {name: each for name, each in figures.values.items() if name not in choices}
    return Figures(kept | {_CHOSEN: values}, figures.families, figures.groups, figures.results)


def section(name: str, shape: str, figures: Figures) -> str:
    """The tables of one collection."""
    measures = [one for one in _MEASURES.get(name, _QUESTIONS) if one in next(iter(figures.values.values()))]
    found = {system: [figures.cell(system, one) for one in measures] for system in figures.values}
    gains = {
        f"{system} minus {other}": [figures.gain(system, other, one) for one in measures]
        for system, others in _AGAINST.items()
        for other in others
    }
    heads = ["", *map(words, measures)]
    n_queries = f"{len(figures.families):,} queries"
    return "\n\n".join([f"## {name}, {shape} ({n_queries})", table(heads, found), table(heads, gains)])


def main(arguments: list[str]) -> int:
    """Measure the sets that are named, or all, and write the page."""
    names = arguments[1:] or list(SETS)
    if not arguments or not set(names) <= set(SETS) or not all((Path(arguments[0]) / SETS[one]).is_dir() for one in names):
        print(f"usage: python -m bench.multihop.sentences DATA [SET ...]   (sets: {', '.join(SETS)}; DATA holds their folders)")
        return 2
    warnings.simplefilter("ignore")
    data = Data.of(arguments[0])
    standing = _PAGE.read_text("utf-8") if _PAGE.exists() else ""
    sections = {part.split(" (", 1)[0]: f"## {part.strip()}" for part in re.split(r"^## ", standing, flags=re.MULTILINE)[1:]}
    for name in names:
        for titled in (False, True):
            shape = "with titles" if titled else "titles taken away"
            figures = measured(data, name, titled=titled)
            sections[f"{name}, {shape}"] = section(name, shape, figures)
            _PAGE.write_text(page((_HERE / "sentences.md").read_text("utf-8"), tables="\n\n".join(sections.values())), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
