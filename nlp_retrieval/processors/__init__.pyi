"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.processors.signatures import DecomposeClaim as DecomposeClaim
from nlp_retrieval.processors.with_model import ExpandedQuery as ExpandedQuery
