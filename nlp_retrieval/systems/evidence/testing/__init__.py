"""Conformance rules for verifiers, fetchers and web search."""

from nlp_retrieval.systems.evidence.testing.fetcher_rules import FetcherRules
from nlp_retrieval.systems.evidence.testing.verifier_rules import VerifierRules
from nlp_retrieval.systems.evidence.testing.web_search_rules import WebSearchRules

__all__ = ["FetcherRules", "VerifierRules", "WebSearchRules"]
