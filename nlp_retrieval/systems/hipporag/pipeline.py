"""HippoRAG 2 as one system: extraction from a corpus with a language model, indexing, and answering questions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval import (
    Answer,
    AnswerEvaluator,
    Evaluation,
    HttpEncoder,
    IndexReport,
    LanguageModel,
    OpenAIEncoder,
    Query,
    QuestionAnswering,
    RetrievalResult,
    SearchableItem,
    Searcher,
    SentenceTransformerEncoder,
)
from nlp_retrieval.core import BaseLoader, Items, check_folder_for_output, expanded, items_of, open_generation, read_manifest
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.errors import ConfigurationError, GoldError, IndexConflictError, IndexMissingError, ModelError, OutputError
from nlp_retrieval.evaluation import gold_answers
from nlp_retrieval.lm import AnsweredQuestion, LanguageModelAnswerer, ModelEndpoint, record_calls
from nlp_retrieval.systems.hipporag.extraction import ExtractionSummary, KnowledgeExtractor, extract_knowledge
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever
from nlp_retrieval.systems.hipporag.settings import DEFAULT_FOLDER, EmbeddingSection, HippoRagSettings, key_variable
from nlp_retrieval.systems.hipporag.store import KnowledgeStore
from nlp_retrieval.text import normalize_title, printable

# Components by the settings of HippoRAG 2.

_PROVIDERS = {"openai": "openai", "vllm": "hosted_vllm", "ollama": "ollama_chat", "openai-compatible": "openai"}


def knowledge_place(settings: HippoRagSettings) -> str:
    """Return the location of the knowledge, for ``KnowledgeStore``: a file, a database URL or ``env:NAME``."""
    storage = settings.storage
    return storage.database if storage.is_database else str(expanded(storage.save_dir) / "knowledge.db")


def index_folder(settings: HippoRagSettings) -> Path:
    """Return the folder of the index."""
    storage = settings.storage
    if storage.index_dir is not None:
        return expanded(storage.index_dir)
    return expanded(DEFAULT_FOLDER if storage.is_database else storage.save_dir) / "index"


def model_of(settings: HippoRagSettings) -> str:
    """Return the full name of the language model."""
    return f"{_PROVIDERS[settings.llm.provider]}/{settings.llm.model_name}"


def language_model(settings: HippoRagSettings, *, extracting: bool = False) -> LanguageModel:
    """Build the language model; answers about a corpus are longer, and can wait."""
    llm, indexing = settings.llm, settings.indexing
    return LanguageModel(
        model_of(settings),
        llm.base_url,
        key_variable(llm.api_key),
        llm.temperature,
        llm.max_tokens or (2048 if extracting else 512),
        ModelEndpoint(
            timeout=120.0 if extracting else 60.0, retries=indexing.retry_attempts, backoff=indexing.retry_backoff_base
        ),
    )


def encoder_of(settings: HippoRagSettings) -> BaseEncoder:
    """Build the encoder."""
    chosen: EmbeddingSection = settings.embedding
    if chosen.provider == "openai":
        key = key_variable(chosen.api_key or settings.llm.api_key) or ""
        return OpenAIEncoder(chosen.model_name, chosen.dimension, key, batch_size=chosen.batch_size)
    if chosen.provider == "custom":
        own = key_variable(chosen.api_key)
        return HttpEncoder(chosen.base_url or "", chosen.model_name, own, chosen.dimension, batch_size=chosen.batch_size)
    return SentenceTransformerEncoder(
        chosen.model_name, batch_size=chosen.batch_size, trust_remote_code=chosen.trust_remote_code
    )


def check_encoder(settings: HippoRagSettings) -> None:
    """Encode one text, as a check before paid calls."""
    chosen = settings.embedding
    dimension = encoder_of(settings).encode_passages(["dimension"]).shape[1]
    if chosen.dimension not in (None, dimension):
        raise ConfigurationError(
            f"embedding.dimension is {chosen.dimension}, and the vectors of {chosen.model_name} have {dimension}; "
            f"write {dimension}, or null for the model's own"
        )


def retriever(settings: HippoRagSettings, knowledge: str, lm: LanguageModel | None = None) -> HippoRagRetriever:
    """Build the retriever over a source of knowledge; the language model links queries if the settings say so."""
    chosen = settings.retrieval
    return HippoRagRetriever(
        encoder_of(settings),
        knowledge,
        linking=chosen.linking,
        triple_k=chosen.query_entity_top_k,
        hops=chosen.graph_expansion_hops,
        lm=lm if chosen.asks_model else None,
        damping=0.5 if chosen.enable_ppr else 0.0,
    )


@dataclass(frozen=True)
class RetrievedPassage:
    """A passage that was found.

    Args:
        item: the passage.
        score: higher is better.
        supporting_entities: its entities that the walk visited most, at most five, most visited first.

    Examples:
        >>> found = RetrievedPassage(items[0], 0.5, ["krill"])
        >>> found.to_dict()
        {'item_id': 'whale', 'title': 'Blue whale', 'score': 0.5, 'supporting_entities': ['krill']}
    """

    item: SearchableItem
    score: float
    supporting_entities: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, without the text."""
        named = {"item_id": self.item.item_id, "title": self.item.title}
        return named | {"score": self.score, "supporting_entities": self.supporting_entities}


@dataclass(frozen=True)
class QueryResult:
    """A question, its answer, and what led to it.

    Args:
        query: the question.
        answer: of the language model, with citations.
        passages: that it read, best first.
        metadata: method, seconds, calls and tokens.

    Examples:
        >>> result = QueryResult("What do whales eat?", Answer(text="krill"), [], {"seconds": 0.2})
        >>> result.to_dict()["answer"]
        'krill'
    """

    query: str
    answer: Answer
    passages: list[RetrievedPassage]
    metadata: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "query": self.query,
            "answer": self.answer.text,
            "citations": list(self.answer.passages),
            "retrieved_documents": [passage.to_dict() for passage in self.passages],
            "metadata": dict(self.metadata),
        }


@dataclass
class PipelineMetrics:
    """Counters of a pipeline since it was created.

    Args:
        queries_processed: questions that were searched for or answered.
        documents_indexed: passages of the indexes that were written or found up to date.

    Examples:
        >>> pipeline = HippoRagPipeline(HippoRagSettings.read("hipporag.yaml"))
        >>> pipeline.metrics.to_dict()
        {'queries_processed': 0, 'documents_indexed': 0}
    """

    queries_processed: int = 0
    documents_indexed: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return the counters by their names."""
        return asdict(self)


class HippoRagPipeline:
    """HippoRAG 2 (Gutierrez et al., 2025) from extraction to answers, with settings from a YAML file.

    Knowledge and index are in the folder ``storage.save_dir``, or knowledge in the database that it names. Passages are found
    as published (see ``HippoRagRetriever``), facts filtered by the language model with ``retrieval.filter_facts``, and the
    answerer reads all of the ``passage_top_k`` that are found.

    Args:
        settings: of everything, or their YAML file.
        lm: asked instead of the endpoint of ``settings.llm``, whose model it is: a client with ``complete(prompt)``, a
            ``dspy.LM``, or a language model.

    Raises:
        ConfigurationError: they cannot be used.

    Examples:
        >>> pipeline = HippoRagPipeline(HippoRagSettings.read("hipporag.yaml"))
        >>> corpus = JsonlLoader("animals.jsonl")
        >>> report = pipeline.load_documents(corpus)  # doctest: +SKIP
        >>> passages = pipeline.retrieve("What do blue whales eat?", top_k=2)  # doctest: +SKIP
        >>> pipeline.query("What do blue whales eat?").answer.text  # doctest: +SKIP
        'krill'
    """

    def __init__(self, settings: HippoRagSettings | str | Path, lm: Any = None) -> None:
        if isinstance(settings, str | Path):
            settings = HippoRagSettings.read(settings)
        if not isinstance(settings, HippoRagSettings):
            raise ConfigurationError(f"settings are {type(settings).__name__}: pass HippoRagSettings, or a path of a YAML file")
        self.settings = settings
        self.metrics = PipelineMetrics()
        """The counters so far."""
        self._own = None if lm is None else LanguageModel.of_client(lm)

    def load_documents(self, documents: Items | str | Path, *, replace: bool = False) -> IndexReport:
        """Extract knowledge from documents, and index them; repeat it after an interruption.

        Args:
            documents: a loader, a path that suffix or folder identifies (as for ``nlp-retrieval index``), or items.
            replace: whether to replace an index of other items.

        Raises:
            ModelError: passages are left without a usable answer; the message says why. Call it again for the rest, or call
                :meth:`index` without them.
        """
        corpus = _corpus_of(documents)
        done = self.extract(corpus, replace=replace)
        if not done.whole:
            left = done.failed + done.not_asked
            raise ModelError(
                f"{left:,} of {done.documents:,} passages have no usable answer of {done.model} "
                f"({done.stopped or done.reasons_told}); call it again to extract only these, or index() to index without them"
            )
        return self.index(corpus, replace=replace)

    def extract(self, corpus: Items, *, replace: bool = False) -> ExtractionSummary:
        """Extract knowledge from the missing passages of a corpus; repeat it after an interruption.

        Free checks come first: the encoder loads and has the dimension of the settings, the folder can be written, and an
        existing index is of this corpus, which may have grown.

        Args:
            corpus: to extract from.
            replace: whether an index of other items will be replaced.

        Raises:
            OutputError: the store cannot be written; committed results are kept.
            ModelError: the encoder cannot be loaded, or the model gave no usable answer at all.
            IndexConflictError: the folder holds an index of other items.
        """
        extractor = self._extractor()
        location = knowledge_place(self.settings)
        if not self._keeps_all(corpus, replace=replace):
            check_folder_for_output(index_folder(self.settings))
        check_encoder(self.settings)
        if not self.settings.storage.is_database:
            _make_folder(Path(location).parent)
        with KnowledgeStore(location, create=True) as store:
            done = extract_knowledge(items_of(corpus), store, extractor, commit_every=self.settings.indexing.batch_size)
        if done.failed and not (done.kept or done.extracted or done.copied):
            raise ModelError(
                f"{extractor.model} gave no usable answer about any passage ({done.reasons_told}), so there is nothing to "
                "index; fix this, and index again"
            )
        return done

    def index(self, corpus: Items, *, replace: bool = False) -> IndexReport:
        """Index an extracted corpus; passages without knowledge are found by similarity alone.

        An index of a part of this corpus is replaced by one of all of it.

        Args:
            corpus: the extracted one.
            replace: whether to replace an index of other items.

        Raises:
            IndexConflictError: the folder holds an index of other items.
            ConfigurationError: nothing was extracted with these settings, or the encoder has another dimension.
        """
        knowledge = self._knowledge()
        grown = self._keeps_all(corpus, replace=replace)
        searcher = Searcher([retriever(self.settings, knowledge)])
        report = searcher.index(corpus, index_folder(self.settings), replace=replace or grown)
        self.__dict__.pop("_opened", None)  # the index is another one
        self.metrics.documents_indexed += report.n_items
        return report

    def _keeps_all(self, corpus: Items, *, replace: bool) -> bool:
        """Return whether there is an index, all of whose passages are in a corpus."""
        folder = index_folder(self.settings)
        if replace or read_manifest(folder) is None:
            return False
        indexed = set(open_generation(folder).items.ids())
        n_indexed = len(indexed)
        indexed.difference_update(item.item_id for item in items_of(corpus))
        if indexed:
            raise IndexConflictError(
                f"{folder} holds an index of {n_indexed:,} passages, {len(indexed):,} of which this corpus does not have (the "
                f'first: "{printable(min(indexed))}"); choose another folder (storage.save_dir, or storage.index_dir), or '
                "overwrite that index with --replace (in Python: replace=True)"
            )
        return True

    def retrieve(self, query: str, top_k: int | None = None) -> list[RetrievedPassage]:
        """Find passages, best first.

        Args:
            query: the question.
            top_k: number of passages; by default ``retrieval.passage_top_k``.

        Raises:
            IndexMissingError: nothing is indexed yet.
            QueryError: ``top_k`` is not positive.
        """
        (results,) = self._opened.search([query], self._top_k(top_k))
        self.metrics.queries_processed += 1
        return self.supported(query, results)

    def _top_k(self, top_k: int | None) -> int:
        return self.settings.retrieval.passage_top_k if top_k is None else top_k

    def query(self, query: str, top_k: int | None = None) -> QueryResult:
        """Answer a question from the index.

        Args:
            query: the question.
            top_k: number of passages that are found and read; by default ``retrieval.passage_top_k``.

        Raises:
            IndexMissingError: nothing is indexed yet.
            QueryError: ``top_k`` is not positive.
        """
        begin = time.perf_counter()
        with record_calls() as calls:
            (answered,) = self._answered([query], top_k)
            passages = self.supported(query, answered.results)
        counts = calls.counts
        metadata: dict[str, Any] = {
            "method": f"hipporag2, linking: {self.settings.retrieval.linking}",
            "facts_filtered": self.settings.retrieval.linking == "triples" and self.settings.retrieval.asks_model,
            "seconds": time.perf_counter() - begin,
            "calls": counts.calls,
            "tokens_in": counts.tokens_in,
            "tokens_out": counts.tokens_out,
        }
        return QueryResult(query, answered.answer, passages, metadata)

    def supported(self, query: str, results: Sequence[RetrievalResult]) -> list[RetrievedPassage]:
        """Return results of a query with the entities that led to each."""
        opened = self._opened.open_retrievers()
        (one,) = opened.retrievers.values()
        rows = opened.generation.items.rows_of([result.item.item_id for result in results])
        named = one.supporting_entities(query, rows) if isinstance(one, HippoRagRetriever) and results else []
        return [RetrievedPassage(hit.item, hit.score, entities) for hit, entities in zip(results, named, strict=True)]

    def ask(self, questions: Sequence[str]) -> list[AnsweredQuestion]:
        """Answer questions from the index, with citations."""
        return self._answered(list(questions), None)

    def _answered(self, questions: list[str], top_k: int | None) -> list[AnsweredQuestion]:
        answerer = LanguageModelAnswerer(self._lm, passages=self._top_k(top_k))
        answered = QuestionAnswering(self._opened, answerer).answer(questions)
        self.metrics.queries_processed += len(answered)
        return answered

    def evaluate(self, queries: Sequence[Query]) -> Evaluation:
        """Answer questions with known answers, and evaluate: exact match, F1, and supporting facts if there are some.

        ``sp_recall`` is the share of the supporting facts whose passage was retrieved, ``sp_cited`` of those that were cited.

        Args:
            queries: with the answers in their metadata, as from the loader ``hotpotqa`` with ``sentence_facts``.

        Raises:
            GoldError: they have no answers.
            IndexMissingError: nothing is indexed yet.
        """
        gold = gold_answers(queries)
        if not gold:
            raise GoldError("no question has an answer in its metadata, so there is nothing to evaluate")
        answered = self.ask([query.text for query in queries])
        judged = AnswerEvaluator(gold).evaluate([one.answer for one in answered])
        if gold[0].facts is not None:
            judged.per_query["sp_recall"] = np.array(
                [_retrieved(one, right.facts or []) for one, right in zip(answered, gold, strict=True)], np.float64
            )
        return judged

    @cached_property
    def _lm(self) -> LanguageModel:
        return self._own or language_model(self.settings)

    def _extractor(self) -> KnowledgeExtractor:
        extractor = KnowledgeExtractor(self._own or language_model(self.settings, extracting=True))
        extractor.model = model_of(self.settings)
        return extractor

    @cached_property
    def _opened(self) -> Searcher:
        folder = index_folder(self.settings)
        return Searcher([retriever(self.settings, self._knowledge(), self._lm)]).open(folder)

    def _knowledge(self) -> str:
        """Return the store and the extraction in it for these settings."""
        location = knowledge_place(self.settings)
        if not self.settings.storage.is_database and not Path(location).is_file():
            raise IndexMissingError(
                f"{Path(location).parent}: nothing has been extracted or indexed there yet; index a corpus first"
            )
        return f"{location}#{self._extractor().extraction.extraction_id}"


def _retrieved(answered: AnsweredQuestion, facts: Sequence[tuple[str, int]]) -> float:
    """Return the share of facts whose passage was retrieved."""
    titles = {normalize_title(result.item.title or result.item.item_id) for result in answered.results}
    return sum(normalize_title(title) in titles for title, _ in facts) / len(facts) if facts else 1.0


def _corpus_of(documents: Items | str | Path) -> BaseLoader | list[SearchableItem]:
    if isinstance(documents, str | Path):
        from nlp_retrieval.cli import corpus_loader

        return corpus_loader(str(documents), None, None)
    return documents if isinstance(documents, BaseLoader) else list(items_of(documents))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot create the folder: {error.strerror or error}") from None
