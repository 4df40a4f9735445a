"""Where the knowledge of an index comes from: a file, or an index that holds it already, known by the digest of that file."""

from __future__ import annotations

import re
from pathlib import Path

from nlp_retrieval.core.files.checksums import sha256_of
from nlp_retrieval.core.forks import Lock
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.graph.knowledge.openie_file import OpenIeFile
from nlp_retrieval.graph.knowledge.statements import KnowledgeSource

_HELD = re.compile(r"sha256:[0-9a-f]{64}")
_State = tuple[str, int, int, int, int]
_digests: dict[_State, str] = {}
_computing = Lock()


def _is_held(knowledge: str) -> bool:
    """Whether it names what an index holds, and nothing that could be opened."""
    return _HELD.fullmatch(knowledge) is not None


def digest_of(knowledge: str | None) -> str | None:
    """Return ``sha256:<digest>`` of a file of knowledge; computed again only when the file changes.

    Raises:
        SourceError: the file cannot be read.
    """
    if knowledge is None or _is_held(knowledge):
        return knowledge
    try:
        path = Path(knowledge).expanduser()
        seen = path.stat()
        state = (str(path.absolute()), seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        with _computing:
            if state not in _digests:
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

    Raises:
        ConfigurationError: it is no file but the digest of one.
        SourceError: the file is none of entities and triples.
    """
    if knowledge is None:
        return None
    if _is_held(knowledge):
        raise ConfigurationError(f"knowledge={knowledge!r} is what an index holds, and cannot be read again; name the file")
    return OpenIeFile(Path(knowledge).expanduser())


def joining_source_of(knowledge: str | None, added: str | None = None) -> KnowledgeSource | None:
    """Open the source of items that join an index; None where all that is named is what the index holds.

    Args:
        knowledge: the source of the index.
        added: a source of further items; by default that of the index.
    """
    named = knowledge if added is None else added
    return None if named is None or _is_held(named) else source_of(named)
