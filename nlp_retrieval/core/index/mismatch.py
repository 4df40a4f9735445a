"""The error about an index that was built with another configuration than the one to search with."""

from __future__ import annotations

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.errors import IndexMismatchError, IndexMissingError


def no_such_index(generation: Generation, name: str, wanted: Config) -> IndexMissingError | IndexMismatchError:
    """Return an error that lists the differences, field by field, from the most similar retriever in the index."""
    same_name = [record.identity for record in generation.manifest.retrievers if record.identity.get("name") == name]
    if not same_name:
        indexed = ", ".join(sorted({str(record.identity["name"]) for record in generation.manifest.retrievers})) or "none"
        return IndexMissingError(
            f"{generation.path} holds no index of {name!r} (retrievers there: {indexed}); index with it first: "
            "what is there already will not be built again"
        )
    differences = min((_differences(found, wanted) for found in same_name), key=len)
    listed = "; ".join(f"{field}: indexed with {found!r}, now {now!r}" for field, found, now in differences)
    return IndexMismatchError(
        f"the {name} index at {generation.path} was built with another configuration ({listed}); search with the "
        "configuration that was indexed, or index again with this one beside it"
    )


def _differences(found: Config, wanted: Config, prefix: str = "") -> list[tuple[str, object, object]]:
    differences: list[tuple[str, object, object]] = []
    for key in sorted(found.keys() | wanted.keys()):
        one, other = found.get(key), wanted.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            differences += _differences(one, other, f"{prefix}{key}.")
        elif pairs := _paired(one, other):
            for place, (mine, its) in enumerate(pairs):
                differences += _differences(mine, its, f"{prefix}{key}[{place}].")
        elif one != other:
            differences.append((f"{prefix}{key}", one, other))
    return differences


def _paired(one: object, other: object) -> list[tuple[Config, Config]]:
    """The components of two lists in pairs, if both hold components of the same names in the same order."""
    if not (isinstance(one, list) and isinstance(other, list) and len(one) == len(other)):
        return []
    pairs = list(zip(one, other, strict=True))
    alike = all(isinstance(mine, dict) and isinstance(its, dict) and mine.get("name") == its.get("name") for mine, its in pairs)
    return pairs if alike else []
