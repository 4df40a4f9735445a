"""Single calls for scripts, on one opened study: ask, find, score, embed.

``open_study("study.yaml")`` opens a study for the later calls of a process; each function also accepts ``study=``. Models are
loaded once, by the study's searchers, not by each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nlp_retrieval import RetrievalResult, SearchableItem
from nlp_retrieval.core import BaseReranker, BaseSearcher
from nlp_retrieval.encoders import BaseEncoder, Vectors
from nlp_retrieval.errors import ConfigurationError, QueryError
from nlp_retrieval.systems.policy.answers import StudyReport, chunk_of
from nlp_retrieval.systems.policy.asking import AskedText, Method, StudySettings, all_hits, asked, chosen_subjects
from nlp_retrieval.systems.policy.config import StudyConfig
from nlp_retrieval.systems.policy.study import PolicyStudy


class EmbeddedPrompt(NamedTuple):
    """A prompt as vectors.

    Args:
        transformer: ``[dimension]`` of the study's encoder; None if it has none.
        word2vec: ``[dimension]`` of its word vectors; None if it has none, or they lack all words of the prompt.
    """

    transformer: Vectors | None
    word2vec: Vectors | None


class _Chunk(RetrievalResult):
    """A result that is read by the keys of a file of answers, too: ``chunk["content"]``, ``chunk["regex_score"]``."""

    def __getitem__(self, key: str) -> Any:
        chunk = chunk_of(self)
        if key not in chunk:
            raise KeyError(f"no {key!r}; there are {', '.join(chunk)}")
        return chunk[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or another."""
        return chunk_of(self).get(key, default)

    def __repr_name__(self) -> str:
        return RetrievalResult.__name__


def _chunks(results: list[RetrievalResult]) -> list[RetrievalResult]:
    return [_Chunk.trusted(result.item, result.score, result.signals) for result in results]


@dataclass
class _OpenStudy:
    """The study that :func:`open_study` opened last, and its folder."""

    study: PolicyStudy | None = None
    output: Path = Path("answers")


_opened = _OpenStudy()


def open_study(study: PolicyStudy | str | Path, output: str | Path = "answers") -> PolicyStudy:
    """Open a study for the functions of this module, in all threads of this process; it replaces one opened before.

    Args:
        study: an open one, or its configuration file.
        output: folder for :func:`run_script`; a configuration file may name another.

    Raises:
        SourceError: there is no such file.
        ConfigurationError: it cannot be used.
        IndexMissingError: there is no index.

    Examples:
        >>> study = open_study("study.yaml")
        >>> study.subjects
        {'Costa Verde': 6, 'Ile': 2, 'Ostland': 8}
    """
    if not isinstance(study, PolicyStudy):
        config = StudyConfig.read(study)
        study, output = config.study(), config.output
    _opened.study, _opened.output = study, Path(output)
    return study


def run_script(
    question_number: int | None = None,
    country: str | None = None,
    method: Method | bool = "vector",
    *,
    use_hop_retrieval: bool = False,
    study: PolicyStudy | None = None,
    output: str | Path | None = None,
) -> StudyReport:
    """Ask one question or all, about one country or all, and write a file for each country.

    Args:
        question_number: in the profile; None for all.
        country: or other subject of the profile; None for all.
        method: ``vector``, ``hop`` or ``both``; True is ``both``.
        use_hop_retrieval: whether relations are followed as well: ``both``.
        study: by default the opened one.
        output: the folder; by default that of the opened study, or ``answers`` with ``study``.

    Raises:
        ConfigurationError: the study has no retriever that follows relations, and they are asked for.

    Examples:
        >>> report = run_script(question_number=1, country="Ostland", study=study, output="first")
        >>> report.files["Ostland"].as_posix()
        'first/answers/Ostland.json'
    """
    if use_hop_retrieval and method not in ("vector", "both", True):
        raise ConfigurationError(f"method={method!r} and use_hop_retrieval=True say two things; leave one out")
    method = "both" if use_hop_retrieval or method is True else "vector" if method is False else method
    folder = Path("answers") if study is not None else _opened.output
    return _study(study).run(folder if output is None else output, country, question_number, method)


def embed_prompt(prompt: str, *, study: PolicyStudy | None = None) -> EmbeddedPrompt:
    """Return the vectors of a prompt: by the study's encoder, and by its word vectors.

    Args:
        prompt: a question.
        study: by default the opened one.

    Examples:
        >>> embedded = embed_prompt("How does Ostland make its power?", study=study)
        >>> embedded.transformer.shape
        (64,)
    """
    chosen = _study(study)
    transformer = next((part.encoder for part in _parts(chosen.searcher) if _encodes(part, "encoder")), None)
    words = next((part.word_vectors for part in _parts(chosen.searcher) if _encodes(part, "word_vectors")), None)
    return EmbeddedPrompt(_vector(transformer, prompt), _vector(words, prompt))


def retrieve_chunks(
    embedded_prompts: EmbeddedPrompt | None,
    prompt: str,
    top_k: int = 20,
    country: str | None = None,
    min_similarity: float = 0.2,
    *,
    study: PolicyStudy | None = None,
) -> list[RetrievalResult]:
    """Find the passages that answer a prompt, scored by all signals; read by key, too: ``chunk["combined_score"]``.

    Args:
        embedded_prompts: of :func:`embed_prompt`, or None. The searcher embeds the prompt itself, with its open models; vectors
            of another model are not comparable, and are refused.
        prompt: a question.
        top_k: at most this many.
        country: only passages of this country; None for all.
        min_similarity: passages below this combined score are left out.
        study: by default the opened one.

    Raises:
        QueryError: there is no such country; or the vectors are of another dimension than the study's.

    Examples:
        >>> chunks = retrieve_chunks(None, "How does Ostland make its power?", top_k=2, country="Ostland", study=study)
        >>> [chunk.item.metadata["country"] for chunk in chunks]
        ['Ostland', 'Ostland']
    """
    chosen = _study(study)
    if embedded_prompts is not None:
        _check_dimensions(embedded_prompts, embed_prompt(prompt, study=chosen))
    return _found(chosen, chosen.searcher, None, prompt, top_k, country, min_similarity)


def retrieve_chunks_with_hop(
    prompt: str, top_k: int = 20, country: str | None = None, *, study: PolicyStudy | None = None
) -> list[RetrievalResult]:
    """Find the passages that answer a prompt along relations between passages.

    Args:
        prompt: a question.
        top_k: at most this many.
        country: only passages of this country; None for all.
        study: by default the opened one.

    Raises:
        QueryError: there is no such country.
        ConfigurationError: the study has no retriever that follows relations.

    Examples:
        >>> question = "Wind supplies how much of the power?"
        >>> chunks = retrieve_chunks_with_hop(question, top_k=2, country="Ostland", study=study)
        >>> [chunk.item.content for chunk in chunks]
        ['Wind supplies 30% of the power.', 'Wind supplies 12% of the power.']
    """
    chosen = _study(study)
    return _found(chosen, chosen.opened_hop(), chosen.searcher, prompt, top_k, country, None)


def evaluate_chunks(
    chunks: Sequence[RetrievalResult | SearchableItem],
    prompt: str,
    embeddings: EmbeddedPrompt | None = None,
    *,
    study: PolicyStudy | None = None,
) -> list[RetrievalResult]:
    """Score passages by all signals of the study's reranker; all are returned, best first.

    Args:
        chunks: passages, or results.
        prompt: a question.
        embeddings: of :func:`embed_prompt`, or None; see :func:`retrieve_chunks`.
        study: by default the opened one.

    Raises:
        ConfigurationError: the study's searcher has no reranker.
        QueryError: the vectors are of another dimension than the study's, or a chunk is neither passage nor result.

    Examples:
        >>> chunks = evaluate_chunks(plans, "What does the plan of Ostland cost?", study=study)
        >>> len(chunks), "multi_signal.patterns" in chunks[0].signals
        (16, True)
    """
    chosen = _study(study)
    reranker = getattr(chosen.searcher, "reranker", None)
    if not isinstance(reranker, BaseReranker):
        raise ConfigurationError("the study's searcher has no reranker that scores passages; give it MultiSignalReranker()")
    if embeddings is not None:
        _check_dimensions(embeddings, embed_prompt(prompt, study=chosen))
    for number, chunk in enumerate(chunks, start=1):
        if not isinstance(chunk, RetrievalResult | SearchableItem):
            raise QueryError(
                f"chunk {number} is {chunk!r:.60} ({type(chunk).__name__}); pass what retrieve_chunks returned, or "
                'SearchableItem(item_id="1", content="text")'
            )
    results = [chunk if isinstance(chunk, RetrievalResult) else RetrievalResult(item=chunk, score=0.0) for chunk in chunks]
    return _chunks(reranker.rerank([prompt], [results], len(results))[0]) if results else []


def _study(study: PolicyStudy | None) -> PolicyStudy:
    chosen = _opened.study if study is None else study
    if chosen is None:
        raise ConfigurationError('no study is open; call open_study("study.yaml") first, or pass study=')
    return chosen


def _found(
    study: PolicyStudy,
    searcher: BaseSearcher,
    scorer: BaseSearcher | None,
    prompt: str,
    top_k: int,
    country: str | None,
    min_similarity: float | None,
) -> list[RetrievalResult]:
    method: Method = "vector" if scorer is None else "hop"
    settings = StudySettings(method, top_k, min_similarity, where=study.where)
    if country is None:
        where, n_passages = study.where, len(searcher.opened.items)
    else:
        (name,) = chosen_subjects(country, study.subjects, study.profile.subject)
        where, n_passages = settings.filter_for(study.profile.subject, name), study.subjects[name]
    asked_for = [AskedText(prompt, prompt)]
    hits = all_hits(searcher, asked_for, n_passages, where, settings, method)
    describing = None if scorer is None else (scorer, all_hits(scorer, asked_for, n_passages, where, settings, "vector"))
    (answer,) = asked(searcher, asked_for, hits, settings, method, country or "all", describing)
    return _chunks(answer.results)


def _parts(searcher: BaseSearcher) -> list[Any]:
    """Return the parts of a searcher that may hold models: the rerankers first, then the retrievers."""
    reranker = getattr(searcher, "reranker", None)
    return [*(reranker if isinstance(reranker, list) else [reranker]), *searcher.retrievers.values()]


def _encodes(part: object, name: str) -> bool:
    return isinstance(getattr(part, name, None), BaseEncoder)


def _vector(encoder: BaseEncoder | None, prompt: str) -> Vectors | None:
    if encoder is None:
        return None
    vector = encoder.encode_queries([prompt])[0]
    return vector if np.isfinite(vector).all() and vector.any() else None


def _check_dimensions(prompt: EmbeddedPrompt, own: EmbeddedPrompt) -> None:
    for name in EmbeddedPrompt._fields:
        vector, expected = getattr(prompt, name), getattr(own, name)
        if vector is not None and expected is not None and np.shape(vector) != expected.shape:
            raise QueryError(
                f"the {name} vector has shape {list(np.shape(vector))}, and the study's {list(expected.shape)}; use that of "
                "embed_prompt()"
            )
