"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.processors.signatures import ClaimDecomposition as ClaimDecomposition
from nlp_retrieval.systems.hover.compiling import discrete_retrieval_eval as discrete_retrieval_eval
from nlp_retrieval.systems.hover.compiling import hover_examples as hover_examples
from nlp_retrieval.systems.hover.compiling import optimize as optimize
from nlp_retrieval.systems.hover.programs import HoverMultiHop as HoverMultiHop
from nlp_retrieval.systems.hover.programs import HoverMultiHopPipeline as HoverMultiHopPipeline
from nlp_retrieval.systems.hover.searcher import MultiHopSearcher as MultiHopSearcher
