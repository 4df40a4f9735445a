"""Compose, search with and honestly compare retrieval pipelines.

The public names are imported when they are first used, so that ``import nlp_retrieval`` is quick and needs no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nlp_retrieval._version import __version__

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.benchmarker import Benchmarker, BenchmarkRun
    from nlp_retrieval.benchmarks.comparing import compare_runs, judged_again
    from nlp_retrieval.benchmarks.evaluator import Evaluation, RetrievalEvaluator
    from nlp_retrieval.benchmarks.lists import RunLists
    from nlp_retrieval.benchmarks.prices import ModelPrice, Prices
    from nlp_retrieval.benchmarks.results import (
        BenchmarkReport,
        ConfigurationResult,
        Cost,
        FailedConfiguration,
        LanguageModelCost,
    )
    from nlp_retrieval.benchmarks.run_files import write_run_files
    from nlp_retrieval.benchmarks.run_sources import Sources, read_sources
    from nlp_retrieval.benchmarks.saved import SavedRun, read_run_folder
    from nlp_retrieval.benchmarks.significance import Comparison, compare
    from nlp_retrieval.benchmarks.significance_verdict import verdict
    from nlp_retrieval.benchmarks.trec_run import TrecRun
    from nlp_retrieval.benchmarks.tuning import TuningReport, tune
    from nlp_retrieval.benchmarks.wandb_runs import WandbSettings, log_to_wandb
    from nlp_retrieval.core.explanation import Explanation, Step
    from nlp_retrieval.core.fusion import BaseFusion, CombMNZ, CombSUM, RawScore, ReciprocalRankFusion, WeightedSum
    from nlp_retrieval.core.generation import verify_index
    from nlp_retrieval.core.index_store import IndexReport
    from nlp_retrieval.core.index_update import UpdateReport
    from nlp_retrieval.core.interfaces import BaseLoader, BaseQueryLoader, BaseUserQueryProcessor
    from nlp_retrieval.core.models import Gold, Query, RetrievalResult, SearchableItem
    from nlp_retrieval.core.reranker import BaseReranker
    from nlp_retrieval.core.retriever import BaseRetriever
    from nlp_retrieval.core.searcher import Searcher
    from nlp_retrieval.encoders.base import BaseEncoder
    from nlp_retrieval.encoders.multi_vector import ColbertEncoder
    from nlp_retrieval.encoders.multi_vector_base import BaseTokenEncoder
    from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
    from nlp_retrieval.errors import RetrievalError, RetrievalWarning
    from nlp_retrieval.graph.extractor import BaseLinkExtractor
    from nlp_retrieval.graph.hyperlinks import Hyperlinks
    from nlp_retrieval.graph.same_parent import SameParent
    from nlp_retrieval.graph.shared_entities import SharedEntities
    from nlp_retrieval.graph.title_mentions import TitleMentions
    from nlp_retrieval.lm.counting import CallCounts, record_calls
    from nlp_retrieval.lm.language_model import LanguageModel
    from nlp_retrieval.loaders.beir import BeirLoader
    from nlp_retrieval.loaders.chunking import ChunkingLoader
    from nlp_retrieval.loaders.database import DatabaseLoader
    from nlp_retrieval.loaders.hotpotqa import HotpotqaLoader
    from nlp_retrieval.loaders.hover import HoverLoader
    from nlp_retrieval.loaders.jsonl import JsonlLoader
    from nlp_retrieval.pipelines.hover.searcher import MultiHopSearcher
    from nlp_retrieval.processors.chain import Chain
    from nlp_retrieval.processors.claim_decomposition import ClaimDecomposition
    from nlp_retrieval.processors.clauses import ClauseSplit
    from nlp_retrieval.processors.entity_phrases import EntityPhrases
    from nlp_retrieval.processors.hyde import HyDE
    from nlp_retrieval.processors.keyword_expansion import KeywordExpansion
    from nlp_retrieval.rerankers.cross_encoder import CrossEncoderReranker
    from nlp_retrieval.rerankers.late_interaction import LateInteractionReranker
    from nlp_retrieval.rerankers.overlap import OverlapReranker
    from nlp_retrieval.retrievers.bm25s import Bm25sRetriever
    from nlp_retrieval.retrievers.colbert import ColbertRetriever
    from nlp_retrieval.retrievers.faiss import FaissRetriever
    from nlp_retrieval.retrievers.link_graph import LinkGraphRetriever
    from nlp_retrieval.retrievers.pyserini import PyseriniRetriever

_MODULES = {
    "BaseEncoder": "encoders.base",
    "BaseFusion": "core.fusion",
    "BaseLinkExtractor": "graph.extractor",
    "BaseLoader": "core.interfaces",
    "BaseQueryLoader": "core.interfaces",
    "BaseReranker": "core.reranker",
    "BaseRetriever": "core.retriever",
    "BaseTokenEncoder": "encoders.multi_vector_base",
    "BaseUserQueryProcessor": "core.interfaces",
    "BeirLoader": "loaders.beir",
    "BenchmarkReport": "benchmarks.results",
    "BenchmarkRun": "benchmarks.benchmarker",
    "Benchmarker": "benchmarks.benchmarker",
    "Bm25sRetriever": "retrievers.bm25s",
    "CallCounts": "lm.counting",
    "Chain": "processors.chain",
    "ChunkingLoader": "loaders.chunking",
    "ClaimDecomposition": "processors.claim_decomposition",
    "ClauseSplit": "processors.clauses",
    "ColbertEncoder": "encoders.multi_vector",
    "ColbertRetriever": "retrievers.colbert",
    "CombMNZ": "core.fusion",
    "CombSUM": "core.fusion",
    "Comparison": "benchmarks.significance",
    "ConfigurationResult": "benchmarks.results",
    "Cost": "benchmarks.results",
    "CrossEncoderReranker": "rerankers.cross_encoder",
    "DatabaseLoader": "loaders.database",
    "EntityPhrases": "processors.entity_phrases",
    "Evaluation": "benchmarks.evaluator",
    "Explanation": "core.explanation",
    "FailedConfiguration": "benchmarks.results",
    "FaissRetriever": "retrievers.faiss",
    "Gold": "core.models",
    "HotpotqaLoader": "loaders.hotpotqa",
    "HoverLoader": "loaders.hover",
    "HyDE": "processors.hyde",
    "Hyperlinks": "graph.hyperlinks",
    "IndexReport": "core.index_store",
    "JsonlLoader": "loaders.jsonl",
    "KeywordExpansion": "processors.keyword_expansion",
    "LanguageModel": "lm.language_model",
    "LanguageModelCost": "benchmarks.results",
    "LateInteractionReranker": "rerankers.late_interaction",
    "LinkGraphRetriever": "retrievers.link_graph",
    "ModelPrice": "benchmarks.prices",
    "MultiHopSearcher": "pipelines.hover.searcher",
    "OverlapReranker": "rerankers.overlap",
    "Prices": "benchmarks.prices",
    "PyseriniRetriever": "retrievers.pyserini",
    "Query": "core.models",
    "RawScore": "core.fusion",
    "ReciprocalRankFusion": "core.fusion",
    "RetrievalError": "errors",
    "RetrievalEvaluator": "benchmarks.evaluator",
    "RetrievalResult": "core.models",
    "RetrievalWarning": "errors",
    "RunLists": "benchmarks.lists",
    "SameParent": "graph.same_parent",
    "SavedRun": "benchmarks.saved",
    "SearchableItem": "core.models",
    "Searcher": "core.searcher",
    "SentenceTransformerEncoder": "encoders.sentence_transformer",
    "SharedEntities": "graph.shared_entities",
    "Sources": "benchmarks.run_sources",
    "Step": "core.explanation",
    "TitleMentions": "graph.title_mentions",
    "TrecRun": "benchmarks.trec_run",
    "TuningReport": "benchmarks.tuning",
    "UpdateReport": "core.index_update",
    "WandbSettings": "benchmarks.wandb_runs",
    "WeightedSum": "core.fusion",
    "compare": "benchmarks.significance",
    "compare_runs": "benchmarks.comparing",
    "judged_again": "benchmarks.comparing",
    "log_to_wandb": "benchmarks.wandb_runs",
    "read_run_folder": "benchmarks.saved",
    "read_sources": "benchmarks.run_sources",
    "record_calls": "lm.counting",
    "tune": "benchmarks.tuning",
    "verdict": "benchmarks.significance_verdict",
    "verify_index": "core.generation",
    "write_run_files": "benchmarks.run_files",
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
