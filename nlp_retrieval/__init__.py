"""Compose, search with and honestly compare retrieval pipelines.

The public names are imported when they are first used, so that ``import nlp_retrieval`` is quick and needs no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nlp_retrieval._version import __version__

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.benchmarker import Benchmarker, BenchmarkRun
    from nlp_retrieval.benchmarks.cost.prices import ModelPrice, Prices
    from nlp_retrieval.benchmarks.results import (
        BenchmarkReport,
        ConfigurationResult,
        Cost,
        FailedConfiguration,
        LanguageModelCost,
    )
    from nlp_retrieval.benchmarks.runs.compare import compare_runs, judged_again
    from nlp_retrieval.benchmarks.runs.folder import SavedRun, read_run_folder
    from nlp_retrieval.benchmarks.runs.sources import Sources, read_sources
    from nlp_retrieval.benchmarks.settings import WandbSettings
    from nlp_retrieval.benchmarks.trec_run import TrecRun
    from nlp_retrieval.core.components.interfaces import BaseLoader, BaseQueryLoader, BaseUserQueryProcessor
    from nlp_retrieval.core.explanation import Explanation, Step
    from nlp_retrieval.core.index.build import IndexReport
    from nlp_retrieval.core.index.generation import verify_index
    from nlp_retrieval.core.index.update import UpdateReport
    from nlp_retrieval.core.models import Gold, Query, RetrievalResult, SearchableItem
    from nlp_retrieval.core.search.fusion import BaseFusion, CombMNZ, CombSUM, RawScore, ReciprocalRankFusion, WeightedSum
    from nlp_retrieval.core.search.reranker import BaseReranker
    from nlp_retrieval.core.search.retriever import BaseRetriever
    from nlp_retrieval.core.search.searcher import Searcher
    from nlp_retrieval.encoders.base import BaseEncoder
    from nlp_retrieval.encoders.colbert import ColbertEncoder
    from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
    from nlp_retrieval.encoders.token_base import BaseTokenEncoder
    from nlp_retrieval.errors import RetrievalError, RetrievalWarning
    from nlp_retrieval.evaluation.comparison import Comparison, compare
    from nlp_retrieval.evaluation.evaluator import Evaluation, RetrievalEvaluator
    from nlp_retrieval.evaluation.rankings import RunLists
    from nlp_retrieval.evaluation.verdict import verdict
    from nlp_retrieval.graph.links.base import BaseLinkExtractor
    from nlp_retrieval.graph.links.hyperlinks import Hyperlinks
    from nlp_retrieval.graph.links.same_parent import SameParent
    from nlp_retrieval.graph.links.shared_entities import SharedEntities
    from nlp_retrieval.graph.links.title_mentions import TitleMentions
    from nlp_retrieval.lm.counting import CallCounts, record_calls
    from nlp_retrieval.lm.language_model import LanguageModel
    from nlp_retrieval.loaders.beir import BeirLoader
    from nlp_retrieval.loaders.chunking import ChunkingLoader
    from nlp_retrieval.loaders.database import DatabaseLoader
    from nlp_retrieval.loaders.hotpotqa import HotpotqaLoader
    from nlp_retrieval.loaders.hover import HoverLoader
    from nlp_retrieval.loaders.jsonl import JsonlLoader
    from nlp_retrieval.pipelines.hover.searcher import MultiHopSearcher
    from nlp_retrieval.pipelines.link_graph_tuning import TuningReport, tune
    from nlp_retrieval.processors.chain import Chain
    from nlp_retrieval.processors.claim_decomposition import ClaimDecomposition
    from nlp_retrieval.processors.clauses import ClauseSplit
    from nlp_retrieval.processors.entity_phrases import EntityPhrases
    from nlp_retrieval.processors.hyde import HyDE
    from nlp_retrieval.processors.keyword_expansion import KeywordExpansion
    from nlp_retrieval.reports.wandb.runs import log_to_wandb
    from nlp_retrieval.reports.write import write_run_files
    from nlp_retrieval.rerankers.cross_encoder import CrossEncoderReranker
    from nlp_retrieval.rerankers.late_interaction import LateInteractionReranker
    from nlp_retrieval.rerankers.overlap import OverlapReranker
    from nlp_retrieval.retrievers.bm25s.retriever import Bm25sRetriever
    from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever
    from nlp_retrieval.retrievers.faiss.retriever import FaissRetriever
    from nlp_retrieval.retrievers.link_graph.retriever import LinkGraphRetriever
    from nlp_retrieval.retrievers.pyserini.retriever import PyseriniRetriever

_MODULES = {
    "BaseEncoder": "encoders.base",
    "BaseFusion": "core.search.fusion",
    "BaseLinkExtractor": "graph.links.base",
    "BaseLoader": "core.components.interfaces",
    "BaseQueryLoader": "core.components.interfaces",
    "BaseReranker": "core.search.reranker",
    "BaseRetriever": "core.search.retriever",
    "BaseTokenEncoder": "encoders.token_base",
    "BaseUserQueryProcessor": "core.components.interfaces",
    "BeirLoader": "loaders.beir",
    "BenchmarkReport": "benchmarks.results",
    "BenchmarkRun": "benchmarks.benchmarker",
    "Benchmarker": "benchmarks.benchmarker",
    "Bm25sRetriever": "retrievers.bm25s.retriever",
    "CallCounts": "lm.counting",
    "Chain": "processors.chain",
    "ChunkingLoader": "loaders.chunking",
    "ClaimDecomposition": "processors.claim_decomposition",
    "ClauseSplit": "processors.clauses",
    "ColbertEncoder": "encoders.colbert",
    "ColbertRetriever": "retrievers.colbert.retriever",
    "CombMNZ": "core.search.fusion",
    "CombSUM": "core.search.fusion",
    "Comparison": "evaluation.comparison",
    "ConfigurationResult": "benchmarks.results",
    "Cost": "benchmarks.results",
    "CrossEncoderReranker": "rerankers.cross_encoder",
    "DatabaseLoader": "loaders.database",
    "EntityPhrases": "processors.entity_phrases",
    "Evaluation": "evaluation.evaluator",
    "Explanation": "core.explanation",
    "FailedConfiguration": "benchmarks.results",
    "FaissRetriever": "retrievers.faiss.retriever",
    "Gold": "core.models",
    "HotpotqaLoader": "loaders.hotpotqa",
    "HoverLoader": "loaders.hover",
    "HyDE": "processors.hyde",
    "Hyperlinks": "graph.links.hyperlinks",
    "IndexReport": "core.index.build",
    "JsonlLoader": "loaders.jsonl",
    "KeywordExpansion": "processors.keyword_expansion",
    "LanguageModel": "lm.language_model",
    "LanguageModelCost": "benchmarks.results",
    "LateInteractionReranker": "rerankers.late_interaction",
    "LinkGraphRetriever": "retrievers.link_graph.retriever",
    "ModelPrice": "benchmarks.cost.prices",
    "MultiHopSearcher": "pipelines.hover.searcher",
    "OverlapReranker": "rerankers.overlap",
    "Prices": "benchmarks.cost.prices",
    "PyseriniRetriever": "retrievers.pyserini.retriever",
    "Query": "core.models",
    "RawScore": "core.search.fusion",
    "ReciprocalRankFusion": "core.search.fusion",
    "RetrievalError": "errors",
    "RetrievalEvaluator": "evaluation.evaluator",
    "RetrievalResult": "core.models",
    "RetrievalWarning": "errors",
    "RunLists": "evaluation.rankings",
    "SameParent": "graph.links.same_parent",
    "SavedRun": "benchmarks.runs.folder",
    "SearchableItem": "core.models",
    "Searcher": "core.search.searcher",
    "SentenceTransformerEncoder": "encoders.sentence_transformer",
    "SharedEntities": "graph.links.shared_entities",
    "Sources": "benchmarks.runs.sources",
    "Step": "core.explanation",
    "TitleMentions": "graph.links.title_mentions",
    "TrecRun": "benchmarks.trec_run",
    "TuningReport": "pipelines.link_graph_tuning",
    "UpdateReport": "core.index.update",
    "WandbSettings": "benchmarks.settings",
    "WeightedSum": "core.search.fusion",
    "compare": "evaluation.comparison",
    "compare_runs": "benchmarks.runs.compare",
    "judged_again": "benchmarks.runs.compare",
    "log_to_wandb": "reports.wandb.runs",
    "read_run_folder": "benchmarks.runs.folder",
    "read_sources": "benchmarks.runs.sources",
    "record_calls": "lm.counting",
    "tune": "pipelines.link_graph_tuning",
    "verdict": "evaluation.verdict",
    "verify_index": "core.index.generation",
    "write_run_files": "reports.write",
}

__all__ = [
    "BaseEncoder",
    "BaseFusion",
    "BaseLinkExtractor",
    "BaseLoader",
    "BaseQueryLoader",
    "BaseReranker",
    "BaseRetriever",
    "BaseTokenEncoder",
    "BaseUserQueryProcessor",
    "BeirLoader",
    "BenchmarkReport",
    "BenchmarkRun",
    "Benchmarker",
    "Bm25sRetriever",
    "CallCounts",
    "Chain",
    "ChunkingLoader",
    "ClaimDecomposition",
    "ClauseSplit",
    "ColbertEncoder",
    "ColbertRetriever",
    "CombMNZ",
    "CombSUM",
    "Comparison",
    "ConfigurationResult",
    "Cost",
    "CrossEncoderReranker",
    "DatabaseLoader",
    "EntityPhrases",
    "Evaluation",
    "Explanation",
    "FailedConfiguration",
    "FaissRetriever",
    "Gold",
    "HotpotqaLoader",
    "HoverLoader",
    "HyDE",
    "Hyperlinks",
    "IndexReport",
    "JsonlLoader",
    "KeywordExpansion",
    "LanguageModel",
    "LanguageModelCost",
    "LateInteractionReranker",
    "LinkGraphRetriever",
    "ModelPrice",
    "MultiHopSearcher",
    "OverlapReranker",
    "Prices",
    "PyseriniRetriever",
    "Query",
    "RawScore",
    "ReciprocalRankFusion",
    "RetrievalError",
    "RetrievalEvaluator",
    "RetrievalResult",
    "RetrievalWarning",
    "RunLists",
    "SameParent",
    "SavedRun",
    "SearchableItem",
    "Searcher",
    "SentenceTransformerEncoder",
    "SharedEntities",
    "Sources",
    "Step",
    "TitleMentions",
    "TrecRun",
    "TuningReport",
    "UpdateReport",
    "WandbSettings",
    "WeightedSum",
    "__version__",
    "compare",
    "compare_runs",
    "judged_again",
    "log_to_wandb",
    "read_run_folder",
    "read_sources",
    "record_calls",
    "tune",
    "verdict",
    "verify_index",
    "write_run_files",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'nlp_retrieval' has no attribute {name!r}")
    value: object = getattr(import_module(f"nlp_retrieval.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
