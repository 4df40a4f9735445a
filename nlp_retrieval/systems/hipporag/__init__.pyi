"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.systems.hipporag.extraction import ExtractionSummary as ExtractionSummary
from nlp_retrieval.systems.hipporag.extraction import KnowledgeExtractor as KnowledgeExtractor
from nlp_retrieval.systems.hipporag.extraction import extract_knowledge as extract_knowledge
from nlp_retrieval.systems.hipporag.knowledge import KnowledgeSource as KnowledgeSource
from nlp_retrieval.systems.hipporag.knowledge import PassageKnowledge as PassageKnowledge
from nlp_retrieval.systems.hipporag.knowledge import Triple as Triple
from nlp_retrieval.systems.hipporag.pipeline import HippoRagPipeline as HippoRagPipeline
from nlp_retrieval.systems.hipporag.pipeline import PipelineMetrics as PipelineMetrics
from nlp_retrieval.systems.hipporag.pipeline import QueryResult as QueryResult
from nlp_retrieval.systems.hipporag.pipeline import RetrievedPassage as RetrievedPassage
from nlp_retrieval.systems.hipporag.retriever import BaseEmbeddingModel as BaseEmbeddingModel
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever as HippoRagRetriever
from nlp_retrieval.systems.hipporag.settings import HippoRagSettings as HippoRagSettings
from nlp_retrieval.systems.hipporag.shared_knowledge import SharedKnowledge as SharedKnowledge
from nlp_retrieval.systems.hipporag.sources import OpenIeFile as OpenIeFile
from nlp_retrieval.systems.hipporag.store import KnowledgeStore as KnowledgeStore
