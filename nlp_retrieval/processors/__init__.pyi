"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.processors.entity_phrases import EntityPhrases as EntityPhrases
from nlp_retrieval.processors.rules import ClauseSplit as ClauseSplit
from nlp_retrieval.processors.rules import KeywordExpansion as KeywordExpansion
from nlp_retrieval.processors.signatures import ClaimDecomposition as ClaimDecomposition
from nlp_retrieval.processors.with_model import ClaimPhrases as ClaimPhrases
from nlp_retrieval.processors.with_model import ExpandedQuery as ExpandedQuery
from nlp_retrieval.processors.with_model import HyDE as HyDE
