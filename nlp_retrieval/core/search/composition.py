"""The retrievers of a composition: their labels, under which their signals appear, and their builders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nlp_retrieval.core.components.component import require_distinct_names
from nlp_retrieval.core.index.segments import Builder
from nlp_retrieval.core.search.retriever import BaseRetriever, with_parts
from nlp_retrieval.errors import ConfigurationError


def labelled(retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever], where: str) -> dict[str, BaseRetriever]:
    """Return retrievers by label: the given labels, or the registry names, numbered if several share a name.

    Args:
        retrievers: at least one.
        where: the component and the parameter, for messages.

    Raises:
        ConfigurationError: there are none, or a label would be ambiguous in the name of a signal.
    """
    if len(retrievers) == 0:
        raise ConfigurationError(f"{where} is empty; pass at least one")
    if isinstance(retrievers, Mapping):
        if wrong := [label for label in retrievers if not label or "." in label or "[" in label]:
            raise ConfigurationError(f"{where}: {wrong[0]!r} cannot be a label; leave out '.' and '['")
        if "name" in retrievers:  # in a file, it could not be distinguished from the settings of one retriever
            raise ConfigurationError(f"{where}: 'name' cannot be a label; choose another")
        return dict(retrievers)
    by_label: dict[str, BaseRetriever] = {}
    for retriever in retrievers:
        label, number = retriever.name, 1
        while label in by_label:
            number += 1
            label = f"{retriever.name}-{number}"
        by_label[label] = retriever
    return by_label


def builders_of(retrievers: Iterable[BaseRetriever]) -> list[Builder]:
    """Return builders for these retrievers and their parts.

    Raises:
        ConfigurationError: components of two classes have the same name.
    """
    needed = with_parts(retrievers)
    require_distinct_names(needed)
    return [retriever.builder() for retriever in needed]
