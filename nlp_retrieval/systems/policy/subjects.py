"""Subjects of questions: the values of a metadata field of the passages of an index."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from nlp_retrieval.core import ItemTable
from nlp_retrieval.errors import QueryError, RetrievalWarning, nearest
from nlp_retrieval.text import printable

__all__ = ["chosen_subjects", "subjects_of"]

_LISTED = 40


def subjects_of(items: ItemTable, field: str) -> dict[str, int]:
    """Return the number of passages of each subject, by name.

    A passage with a list as its value belongs to each of them. Passages without a value are counted in a warning: no question
    finds them.

    Args:
        items: of the index.
        field: metadata that names the subject.

    Raises:
        QueryError: no passage has a string there.
    """
    counts: Counter[str] = Counter()
    keys: set[str] = set()
    total = without = 0
    for item in items.stream_live():
        total += 1
        value = item.metadata.get(field)
        names = {one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one.strip()}
        counts.update(names)
        without += not names
        if not names and len(keys) < _LISTED:
            keys |= item.metadata.keys()
    if not counts:
        raise QueryError(
            f"no passage of this index has a text as its metadata {field!r}, which the profile asks by; "
            f"{nearest(field, map(printable, keys))}"
        )
    if without:
        warnings.warn(
            f"{without:,} of {total:,} passages have no {field}; no question finds them", RetrievalWarning, stacklevel=2
        )
    return dict(sorted(counts.items()))


def chosen_subjects(wanted: str | Sequence[str] | None, known: Iterable[str], field: str) -> list[str]:
    """Return the subjects to ask about, in the order of the index, each once.

    Args:
        wanted: names in the index; None for all.
        known: those of the index, sorted.
        field: metadata that names the subject, for messages.

    Raises:
        QueryError: a name is unknown or empty, or there are none.
    """
    names = list(known)
    if wanted is None:
        return names
    asked = [wanted] if isinstance(wanted, str) else list(wanted)
    if not asked:
        raise QueryError(f"no {field} is named; leave the list out to ask about all {len(names)}")
    for name in asked:
        if not isinstance(name, str) or not name.strip():
            raise QueryError(f"the {field} to ask about has no name; leave it out to ask about all {len(names)}")
        if name not in names:
            raise QueryError(f"there is no {field} {printable(name[:80])!r} in this index; {_nearest(name, names)}")
    return [name for name in names if name in set(asked)]


def _nearest(name: str, names: list[str]) -> str:
    """Return a hint with the most similar names, whatever their case, and the existing ones."""
    folded = {one.casefold(): one for one in names}
    close = [folded[one] for one in get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.6)]
    listed = ", ".join(map(printable, names[:_LISTED])) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
    meant = f"did you mean {' or '.join(repr(printable(one)) for one in close)}? " if close else ""
    return f"{meant}There are: {listed}"
