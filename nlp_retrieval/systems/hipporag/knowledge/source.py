"""Sources of the knowledge of an index: a file, a knowledge store, or an index that holds it, identified by a digest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nlp_retrieval.core import Lock, is_settled, sha256_of, state_of
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.systems.hipporag.knowledge.openie_file import OpenIeFile
from nlp_retrieval.systems.hipporag.knowledge.statements import KnowledgeSource
from nlp_retrieval.systems.hipporag.knowledge.store.knowledge_store import KnowledgeStore, StoredKnowledge

_SQLITE = b"SQLite format 3\0"
_EXTRACTION = re.compile(r"(.+)#([0-9a-f]{1,32})", re.DOTALL)
_HELD = re.compile(r"sha256:[0-9a-f]{64}")
_digests: dict[tuple[str, tuple[int, ...]], str] = {}
_computing = Lock()


def _is_held(knowledge: str) -> bool:
    """Return whether it names the content of an index, not a source to open."""
    return _HELD.fullmatch(knowledge) is not None


def digest_of(knowledge: str | None) -> str | None:
    """Return ``sha256:<digest>`` of a file of knowledge, or of an extraction in a store.

    That of a file is computed again only when the file changes, that of a store each time.

    Raises:
        SourceError: the file or the store cannot be read.
        ConfigurationError: the store does not hold the extraction, or more than one and none was named.
        DependencyError: SQLAlchemy or the database's driver is not installed.
    """
    if knowledge is None or _is_held(knowledge):
        return knowledge
    stored = _stored(knowledge)
    if stored is not None:
        return f"sha256:{stored.digest()}"
    try:
        path = Path(knowledge).expanduser()
        seen = path.stat()
        state = (str(path.absolute()), state_of(seen))
        with _computing:
            if state not in _digests or not is_settled(seen):
                _digests[state] = f"sha256:{sha256_of(path)}"
            return _digests[state]
    except (OSError, ValueError, RuntimeError) as error:  # also a name that no file can have
        why = getattr(error, "strerror", None) or error
        raise SourceError(
            f"knowledge {knowledge!r} cannot be read ({why}); give a file of entities and triples, or, where an index holds it "
            "already, the sha256:... that its manifest names"
        ) from error


def source_of(knowledge: str | None) -> KnowledgeSource | None:
    """Open a source; None for none.

    Args:
        knowledge: a file of entities and triples; or a knowledge store, as the path of its SQLite file, a database URL or
            ``env:NAME``. ``#`` and the beginning of an extraction's fingerprint choose one of several in a store.

    Raises:
        ConfigurationError: it is no source but the digest of one; or the store does not hold the extraction, or more than one
            and none was named.
        SourceError: the file is none of entities and triples, or changed while it was read; or there is no store.
        DependencyError: SQLAlchemy or the database's driver is not installed.
    """
    if knowledge is None:
        return None
    if _is_held(knowledge):
        raise ConfigurationError(f"knowledge={knowledge!r} is what an index holds, and cannot be read again; name the file")
    return _stored(knowledge) or _read_file(Path(knowledge).expanduser())


def joining_source_of(knowledge: str | None, added: str | None = None) -> KnowledgeSource | None:
    """Open the source of added items; None if only the content of the index is named.

    Args:
        knowledge: the source of the index.
        added: a source of further items; by default that of the index.
    """
    named = knowledge if added is None else added
    return None if named is None or _is_held(named) else source_of(named)


def _read_file(path: Path) -> OpenIeFile:
    try:
        before = state_of(path.stat())
    except (OSError, ValueError):
        return OpenIeFile(path)  # which raises the proper error
    read = OpenIeFile(path)
    if state_of(path.stat()) != before:
        raise SourceError(f"{path} changed while it was read, so that nothing says what was read; try again when it is whole")
    return read


def _stored(knowledge: str) -> StoredKnowledge | None:
    """Open an extraction in a store; None if it is not a store."""
    named = None if _is_sqlite(knowledge) else _EXTRACTION.fullmatch(knowledge)
    url, extraction = (knowledge, None) if named is None else named.groups()
    is_store = "://" in url or url.startswith("env:") or _is_sqlite(url)
    return KnowledgeStore(url).source(extraction) if is_store else None


def _is_sqlite(path: str) -> bool:
    try:
        with Path(path).expanduser().open("rb") as stream:
            return stream.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError, RuntimeError):
        return False


def reads_knowledge(source: Any) -> str | None:
    """Allow the digest of what an index holds to a manifest; anything else would be opened."""
    held = source is None or (isinstance(source, str) and re.fullmatch(r"sha256:[0-9a-f]{64}", source))
    return None if held else f"read {source!r}"
