"""The public names, each from the module that defines it: declared here and nowhere else."""

from nlp_retrieval.systems.evidence.audit import CitationAuditor as CitationAuditor
from nlp_retrieval.systems.evidence.audit import Reviews as Reviews
from nlp_retrieval.systems.evidence.citations.published import BaseWorkRegister as BaseWorkRegister
from nlp_retrieval.systems.evidence.citations.published import PublishedWork as PublishedWork
from nlp_retrieval.systems.evidence.citations.published import check_references as check_references
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex as EvidenceIndex
from nlp_retrieval.systems.evidence.testing import VerifierRules as VerifierRules
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier as ClaimVerifier
from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier as BaseVerifier
from nlp_retrieval.systems.evidence.verifiers.base import Judgement as Judgement
from nlp_retrieval.systems.evidence.verifiers.language_model import LanguageModelVerifier as LanguageModelVerifier
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier as LexicalVerifier
from nlp_retrieval.systems.evidence.verifiers.pair_model import PairModelVerifier as PairModelVerifier
from nlp_retrieval.systems.evidence.web_research.crossref import Crossref as Crossref
from nlp_retrieval.systems.evidence.web_research.fetching import BaseFetcher as BaseFetcher
from nlp_retrieval.systems.evidence.web_research.fetching import FetchedPage as FetchedPage
from nlp_retrieval.systems.evidence.web_research.fetching import HttpFetcher as HttpFetcher
from nlp_retrieval.systems.evidence.web_research.full_text import Extract as Extract
from nlp_retrieval.systems.evidence.web_research.full_text import Match as Match
from nlp_retrieval.systems.evidence.web_research.full_text import Quote as Quote
from nlp_retrieval.systems.evidence.web_research.research import ResearchReport as ResearchReport
from nlp_retrieval.systems.evidence.web_research.research import research as research
from nlp_retrieval.systems.evidence.web_research.searching import BaseWebSearch as BaseWebSearch
from nlp_retrieval.systems.evidence.web_research.searching import SearxngSearch as SearxngSearch
from nlp_retrieval.systems.evidence.web_research.searching import WebResult as WebResult
