"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.systems.hover.searcher import MultiHopSearcher as MultiHopSearcher
