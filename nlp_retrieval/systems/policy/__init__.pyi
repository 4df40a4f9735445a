"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.systems.policy.answers import StudyReport as StudyReport
from nlp_retrieval.systems.policy.chunk_tables.retriever import ChunkVectorRetriever as ChunkVectorRetriever
from nlp_retrieval.systems.policy.chunk_tables.rows import ChunkCounts as ChunkCounts
from nlp_retrieval.systems.policy.chunk_tables.rows import ChunkRelation as ChunkRelation
from nlp_retrieval.systems.policy.chunk_tables.rows import ChunkSimilarities as ChunkSimilarities
from nlp_retrieval.systems.policy.chunk_tables.rows import WrittenChunks as WrittenChunks
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTables as ChunkTables
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTablesLoader as ChunkTablesLoader
from nlp_retrieval.systems.policy.functions import embed_prompt as embed_prompt
from nlp_retrieval.systems.policy.functions import evaluate_chunks as evaluate_chunks
from nlp_retrieval.systems.policy.functions import open_study as open_study
from nlp_retrieval.systems.policy.functions import retrieve_chunks as retrieve_chunks
from nlp_retrieval.systems.policy.functions import retrieve_chunks_with_hop as retrieve_chunks_with_hop
from nlp_retrieval.systems.policy.functions import run_script as run_script
from nlp_retrieval.systems.policy.hop.relation import chunk_relations as chunk_relations
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever as HopRetriever
from nlp_retrieval.systems.policy.page.page import write_study_page as write_study_page
from nlp_retrieval.systems.policy.study import PolicyStudy as PolicyStudy
