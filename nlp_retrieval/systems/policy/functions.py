"""Single calls for scripts, on one opened study: ask, find, score, embed.

``open_study("study.yaml")`` opens a study for the later calls of a process; each function also accepts ``study=``. Models are
loaded once, by the study's searchers, not by each call. Passages are dictionaries in the form of the files of answers.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nlp_retrieval import RetrievalResult, SearchableItem, Searcher
from nlp_retrieval.core import BaseReranker, BaseSearcher
from nlp_retrieval.encoders import BaseEncoder, Vectors
from nlp_retrieval.errors import ConfigurationError, QueryError
from nlp_retrieval.systems.policy.answers import chunk_of, read_answers
from nlp_retrieval.systems.policy.asking import AskedText, Method, StudySettings, all_hits, asked, chosen_subject
from nlp_retrieval.systems.policy.config import StudyConfig
from nlp_retrieval.systems.policy.study import PolicyStudy


class EmbeddedPrompt(NamedTuple):
    """A prompt as vectors; a plain pair does as well."""

    transformer: Vectors | None
    word2vec: Vectors | None


Embedded = EmbeddedPrompt | tuple[Vectors | None, Vectors | None]
Chunk = dict[str, Any]

_opened: dict[str, Any] = {}
"""The study that :func:`open_study` opened last, and its folder."""


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
    _opened.update(study=study, output=Path(output))
    return study


def run_script(
    question_number: int | None = None,
    country: str | None = None,
    use_hop: bool = False,
    *,
    use_hop_retrieval: bool = False,
    method: Method | None = None,
    study: PolicyStudy | None = None,
    output: str | Path | None = None,
) -> list[Chunk]:
    """Ask one question or all, about one country or all; write a file for each country, and return what the files hold.

    Args:
        question_number: in the profile; None for all.
        country: or other subject of the profile; None for all.
        use_hop: whether relations are followed as well: ``both``.
        use_hop_retrieval: the same.
        method: ``vector``, ``hop`` or ``both``.
        study: by default the opened one.
        output: the folder; by default that of the opened study, or ``answers`` with ``study``.

    Raises:
        ConfigurationError: the study has no retriever that follows relations, and they are asked for.

    Examples:
        >>> (ostland,) = run_script(1, "Ostland", study=study, output="first")
        >>> ostland["metadata"]["country"], list(ostland["questions"])
        ('Ostland', ['question_1'])
    """
    along = use_hop or use_hop_retrieval
    if along and method not in (None, "both"):
        raise ConfigurationError(f"method={method!r} and use_hop=True say two things; leave one out")
    folder = output or (_opened.get("output") if study is None else None) or "answers"
    report = _study(study).run(folder, country, question_number, method or ("both" if along else "vector"))
    return [answers for path in report.files.values() if (answers := read_answers(path)) is not None]


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
    parts = _parts(_study(study).searcher)
    return EmbeddedPrompt(*(_vector(parts, name, prompt) for name in _MODELS))


def retrieve_chunks(
    embedded_prompts: Embedded | None,
    prompt: str,
    top_k: int = 20,
    country: str | None = None,
    min_similarity: float = 0.2,
    *,
    study: PolicyStudy | None = None,
) -> list[Chunk]:
    """Find the passages that answer a prompt, scored by all signals.

    Args:
        embedded_prompts: of :func:`embed_prompt`: the vectors to search with. None: those of the prompt.
        prompt: a question.
        top_k: at most this many.
        country: only passages of this country; None for all.
        min_similarity: passages below this combined score are left out.
        study: by default the opened one.

    Raises:
        QueryError: there is no such country; or the vectors are of another dimension than the study's.

    Examples:
        >>> prompt = "How does Ostland make its power?"
        >>> chunks = retrieve_chunks(embed_prompt(prompt, study=study), prompt, top_k=2, country="Ostland", study=study)
        >>> [chunk["metadata"]["country"] for chunk in chunks]
        ['Ostland', 'Ostland']
    """
    chosen = _study(study)
    searcher = _with_vectors(chosen.searcher, prompt, embedded_prompts)
    return _searched(chosen, searcher, None, prompt, top_k, country, min_similarity)


def retrieve_chunks_with_hop(
    prompt: str, top_k: int = 20, country: str | None = None, *, study: PolicyStudy | None = None
) -> list[Chunk]:
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
        >>> [chunk["content"] for chunk in chunks]
        ['Wind supplies 30% of the power.', 'Wind supplies 12% of the power.']
    """
    chosen = _study(study)
    return _searched(chosen, chosen.opened_hop(), chosen.searcher, prompt, top_k, country, None)


def evaluate_chunks(
    chunks: Sequence[Mapping[str, Any] | RetrievalResult | SearchableItem],
    prompt: str,
    embeddings: Embedded | None = None,
    *,
    study: PolicyStudy | None = None,
) -> list[Chunk]:
    """Score passages by all signals of the study's reranker; all are returned, best first.

    Args:
        chunks: passages: dictionaries with ``id`` and ``content``, items, or results.
        prompt: a question.
        embeddings: of :func:`embed_prompt`, or None; see :func:`retrieve_chunks`.
        study: by default the opened one.

    Raises:
        ConfigurationError: the study's searcher has no reranker.
        QueryError: the vectors are of another dimension than the study's, or a chunk is no passage.

    Examples:
        >>> chunks = evaluate_chunks([{"id": "a", "content": "Wind supplies 30% of the power."}], "Which power?", study=study)
        >>> chunks[0]["regex_score"] is not None
        True
    """
    searcher = _with_vectors(_study(study).searcher, prompt, embeddings)
    reranker = getattr(searcher, "reranker", None)
    if not isinstance(reranker, BaseReranker):
        raise ConfigurationError("the study's searcher has no reranker that scores passages; give it MultiSignalReranker()")
    results = [_result(number, chunk) for number, chunk in enumerate(chunks, start=1)]
    return [chunk_of(result) for result in reranker.rerank([prompt], [results], len(results))[0]] if results else []


def _result(number: int, chunk: object) -> RetrievalResult:
    if isinstance(chunk, RetrievalResult):
        return chunk
    if isinstance(chunk, Mapping) and isinstance(chunk.get("content"), str):
        metadata, signals = dict(chunk.get("metadata") or {}), chunk.get("signals") or {}
        if chunk.get("title"):
            metadata["title"] = chunk["title"]
        item = SearchableItem(item_id=str(chunk.get("id", number)), content=chunk["content"], metadata=metadata)
        return RetrievalResult(item=item, score=float(chunk.get("score") or 0.0), signals=dict(signals))
    if isinstance(chunk, SearchableItem):
        return RetrievalResult(item=chunk, score=0.0)
    raise QueryError(
        f"chunk {number} is {chunk!r:.60} ({type(chunk).__name__}); pass what retrieve_chunks returned, or "
        '{"id": "1", "content": "text"}'
    )


def _study(study: PolicyStudy | None) -> PolicyStudy:
    chosen = study or _opened.get("study")
    if not isinstance(chosen, PolicyStudy):
        raise ConfigurationError('no study is open; call open_study("study.yaml") first, or pass study=')
    return chosen


def _searched(
    study: PolicyStudy,
    searcher: BaseSearcher,
    scorer: BaseSearcher | None,
    prompt: str,
    top_k: int,
    country: str | None,
    min_similarity: float | None,
) -> list[Chunk]:
    method: Method = "vector" if scorer is None else "hop"
    settings = StudySettings(method, top_k, min_similarity, where=study.where)
    name, n_passages = None, len(searcher.opened.items)
    if country is not None:
        name = chosen_subject(country, study.subjects, study.profile.subject)
        n_passages = study.subjects[name]
    where = settings.filter_for(study.profile.subject, name)
    texts = [AskedText(prompt, prompt)]
    hits = all_hits(searcher, texts, n_passages, where, top_k, method)
    describing = None if scorer is None else (scorer, all_hits(scorer, texts, n_passages, where, top_k, "vector"))
    return asked(searcher, texts, hits, settings, method, country or "all", describing)[0]


_MODELS = ("encoder", "word_vectors")
"""Parameters of rerankers and retrievers for the models of an :class:`EmbeddedPrompt`."""


def _parts(searcher: BaseSearcher) -> list[Any]:
    """Return the parts of a searcher that may hold models: the rerankers first, then the retrievers."""
    reranker = getattr(searcher, "reranker", None)
    return [*(reranker if isinstance(reranker, list) else [reranker]), *searcher.retrievers.values()]


def _vector(parts: Sequence[object], name: str, prompt: str) -> Vectors | None:
    encoder = next((one for part in parts if isinstance(one := getattr(part, name, None), BaseEncoder)), None)
    vector = None if encoder is None else encoder.encode_queries([prompt])[0]
    return None if vector is None or not np.isfinite(vector).all() or not vector.any() else vector


def _with_vectors(searcher: BaseSearcher, prompt: str, given: Embedded | None) -> BaseSearcher:
    """Return a searcher that takes given vectors for those of a prompt."""
    if given is None:
        return searcher
    parts = _parts(searcher)
    if not isinstance(given, tuple | list) or len(given) != len(_MODELS):
        raise QueryError(
            f"embedded prompts are two vectors, of transformer and word2vec, found {given!r:.80}; use embed_prompt()"
        )
    own = {name: _vector(parts, name, prompt) for name in _MODELS}
    vectors = {}
    for (name, expected), field, vector in zip(own.items(), EmbeddedPrompt._fields, given, strict=True):
        if vector is not None and expected is not None:
            if np.shape(vector) != expected.shape:
                raise QueryError(
                    f"the {field} vector has shape {list(np.shape(vector))}, and the study's {list(expected.shape)}; "
                    "use that of embed_prompt()"
                )
            if not np.array_equal(vector, expected):
                vectors[name] = np.asarray(vector, np.float32)
    if not vectors or not isinstance(searcher, Searcher):
        return searcher
    changed = {id(part): _part_with(part, prompt, vectors) for part in parts if part is not None}
    retrievers = [changed[id(part)] for part in searcher.retrievers.values()]
    reranker = changed.get(id(searcher.reranker), searcher.reranker)
    return type(searcher)(**searcher._arguments | {"retrievers": retrievers, "reranker": reranker}).open(searcher.opened.path)


def _part_with(part: Any, prompt: str, vectors: Mapping[str, Vectors]) -> Any:
    encoders = {name: getattr(part, name, None) for name in vectors}
    models = {name: _given(one, prompt, vectors[name]) for name, one in encoders.items() if isinstance(one, BaseEncoder)}
    return type(part)(**part._arguments | models) if models else part


def _given(encoder: BaseEncoder, prompt: str, vector: Vectors) -> BaseEncoder:
    """Return an encoder that gives a vector for a prompt."""

    def encode_queries(queries: list[str]) -> Vectors:
        encoded = np.array(encoder.encode_queries(queries))
        encoded[[place for place, query in enumerate(queries) if query == prompt]] = vector
        return encoded

    given = copy.copy(encoder)
    given.encode_queries = encode_queries  # type: ignore[method-assign]
    return given
