"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.processors.signatures import ClaimDecomposition as ClaimDecomposition
from nlp_retrieval.processors.with_model import ExpandedQuery as ExpandedQuery
