"""The conformance kit: test classes that check a component against every rule that the framework relies on.

In a pytest file of the component's author::

    from nlp_retrieval.testing import RetrieverRules

    class TestMyRetriever(RetrieverRules):
        component = MyRetriever

One subclass checks one configuration; ``make`` creates it, unless the default one is meant. No rule is skipped silently, a
failure names the rule, the component and the values that broke it. The kit needs pytest; the framework never imports it.
"""

from nlp_retrieval.testing.component_rules import BatchRules, ComponentRules
from nlp_retrieval.testing.encoder_rules import EncoderRules, SparseEncoderRules, TokenEncoderRules
from nlp_retrieval.testing.part_rules import AnswererRules, LoaderRules, ProcessorRules, QueryLoaderRules
from nlp_retrieval.testing.reranker_rules import FusionRules, ListRerankerRules, RerankerRules
from nlp_retrieval.testing.retriever_rules import RetrieverRules, UpdateRules
from nlp_retrieval.testing.verdict import QUERIES, SILENT, UNKNOWN, BrokenRuleError, broken, in_threads, shown, without_warnings

__all__ = [
    "QUERIES",
    "SILENT",
    "UNKNOWN",
    "AnswererRules",
    "BatchRules",
    "BrokenRuleError",
    "ComponentRules",
    "EncoderRules",
    "FusionRules",
    "ListRerankerRules",
    "LoaderRules",
    "ProcessorRules",
    "QueryLoaderRules",
    "RerankerRules",
    "RetrieverRules",
    "SparseEncoderRules",
    "TokenEncoderRules",
    "UpdateRules",
    "broken",
    "in_threads",
    "shown",
    "without_warnings",
]
