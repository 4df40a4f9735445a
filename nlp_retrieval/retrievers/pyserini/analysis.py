"""Anserini's analyzers, which turn text into terms, the same for documents and queries."""

from __future__ import annotations

from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.retrievers.pyserini.jvm import Java, java_class

STEMMERS = ("porter", "krovetz", "none")
_WHITESPACE = ("ha", "so", "sw", "yo")  # pyserini splits these at spaces: Lucene has no analyzer for them
LANGUAGES = (
    *("ar", "bn", "da", "de", "en", "es", "fa", "fi", "fr", "ha", "hi", "hu", "id", "it", "ja", "ko"),
    *("nl", "no", "pl", "pt", "ru", "so", "sv", "sw", "te", "th", "tr", "uk", "yo", "zh"),
)


def check_analysis(language: str, stemmer: str, keep_stopwords: bool = False) -> None:
    """Raise :class:`ConfigurationError` unless Lucene has an analyzer for them; does not start Java."""
    if language not in LANGUAGES:
        raise ConfigurationError(f"language={language!r} has no analyzer; {nearest(language, LANGUAGES)}")
    if stemmer not in STEMMERS:
        raise ConfigurationError(f"stemmer={stemmer!r} is unknown; {nearest(stemmer, STEMMERS)}")
    if language != "en" and stemmer != "porter":
        raise ConfigurationError(
            f"stemmer={stemmer!r} is for English; the analyzer of language={language!r} has its own: leave it out"
        )
    if language != "en" and keep_stopwords:
        raise ConfigurationError(
            f"keep_stopwords is for English; the analyzer of language={language!r} has its own stop words: leave it out"
        )


def make_analyzer(language: str, stemmer: str, keep_stopwords: bool = False) -> Java:
    """Return Anserini's analyzer of a language; stemmer and stop words matter only for English."""
    check_analysis(language, stemmer, keep_stopwords)
    if language == "en":
        analyzers = java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
        no_words = [java_class("org.apache.lucene.analysis.CharArraySet").EMPTY_SET] if keep_stopwords else []
        if stemmer == "none":
            return analyzers.newNonStemmingInstance(*no_words)
        return analyzers.newStemmingInstance(stemmer, *no_words)
    if language in _WHITESPACE:
        return java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    return java_class("io.anserini.analysis.AnalyzerMap").getLanguageSpecificAnalyzer(language)
