"""Entities of texts, by rules or by a spaCy pipeline: one choice for all components that link or activate by entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.text.mentions import entities_by_rules
from nlp_retrieval.text.spacy_mentions import SpacyMentions

__all__ = ["RULES", "EntityFinder", "EntityRule"]

RULES = "rules"
"""Runs of capitalised words and quoted titles, without any model."""

EntityRule = Annotated[str, Field(min_length=1)]
"""Method of finding entities: :data:`RULES`, or the name or folder of a spaCy pipeline."""


class EntityFinder:
    """Finds the entities of texts; a pipeline is loaded at first use.

    Args:
        rule: method of finding them.
    """

    def __init__(self, rule: EntityRule) -> None:
        self._spacy = SpacyMentions(rule) if rule != RULES else None

    def identity(self) -> Config:
        """Return the identity that this finder adds to a component, besides the rule itself."""
        return {} if self._spacy is None else self._spacy.identity("mentions")

    def find(self, texts: Iterable[str]) -> Iterator[set[str]]:
        """Yield the entities of each text, normalised; nothing is cached, so that a whole corpus can be read.

        Raises:
            DependencyError: spaCy is not installed.
            ModelError: the pipeline does not load, or recognises no entities.
        """
        return map(entities_by_rules, texts) if self._spacy is None else self._spacy.entities(texts)
