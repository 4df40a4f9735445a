"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.systems.hipporag.engine.retriever import HippoRagRetriever as HippoRagRetriever
from nlp_retrieval.systems.hipporag.knowledge.extraction import ExtractionSummary as ExtractionSummary
from nlp_retrieval.systems.hipporag.knowledge.extraction import KnowledgeExtractor as KnowledgeExtractor
from nlp_retrieval.systems.hipporag.knowledge.extraction import extract_knowledge as extract_knowledge
from nlp_retrieval.systems.hipporag.knowledge.openie_file import OpenIeFile as OpenIeFile
from nlp_retrieval.systems.hipporag.knowledge.shared_knowledge import SharedKnowledge as SharedKnowledge
from nlp_retrieval.systems.hipporag.knowledge.statements import KnowledgeSource as KnowledgeSource
from nlp_retrieval.systems.hipporag.knowledge.statements import PassageKnowledge as PassageKnowledge
from nlp_retrieval.systems.hipporag.knowledge.statements import Triple as Triple
from nlp_retrieval.systems.hipporag.knowledge.store.knowledge_store import KnowledgeStore as KnowledgeStore
from nlp_retrieval.systems.hipporag.pipeline import HippoRagPipeline as HippoRagPipeline
from nlp_retrieval.systems.hipporag.pipeline import PipelineMetrics as PipelineMetrics
from nlp_retrieval.systems.hipporag.settings import HippoRagSettings as HippoRagSettings
