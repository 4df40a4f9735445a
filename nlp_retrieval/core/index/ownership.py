"""The user's own indexes: written by this user's processes, with components of other packages that the user chose.

A manifest needs permission to load a component of another package (docs/SECURITY.md), but in an index of their own, users have
chosen it already. An index cannot say whose it is, because anyone can write or copy one. So a record outside of it, in
the user's cache folder, has its path and the checksum of the whole manifest, which holds the checksums of all files: it is void
for a copy, and after any change by others. It is believed only if nobody else can have written it. It allows these
components with their own parameters, and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.components.registry import has_foreign_part, plan
from nlp_retrieval.core.files.atomic import replace_file
from nlp_retrieval.core.files.cache import cache_folder, make_own
from nlp_retrieval.core.index.manifest import MANIFEST_FILE, Manifest
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError

_KEPT = 256
"""With more records than these, those of removed indexes are dropped."""


def is_own(directory: Path, manifest: Manifest) -> bool:
    """Return whether this user's processes wrote an index as it is, with components of other packages that the user chose."""
    try:
        descriptor = os.open(_record_of(directory), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
                return False
            recorded = file.read(2**16)
        return obstacle() is None and recorded == _content(directory, manifest)
    except OSError:
        return False


def remember_own(directory: Path, manifest: Manifest, chosen: Iterable[Config], before: Manifest | None) -> None:
    """Record an index as the user's own after writing it, if the user chose all its components of other packages.

    Those that somebody else's manifest asked for are not chosen by adding to that index.

    Args:
        directory: the index directory.
        manifest: as written.
        chosen: settings of the retrievers that the user named, or trusted.
        before: the manifest before it; None if there was none.
    """
    foreign = [canonical_json(record.config) for record in manifest.retrievers if _is_foreign(record.config)]
    if not foreign:
        return
    permitted = {canonical_json(without_secrets(config)) for config in chosen}
    if before is not None and is_own(directory, before):
        permitted |= {canonical_json(record.config) for record in before.retrievers}
    if not permitted.issuperset(foreign):
        return
    with suppress(OSError):  # without a record, the user is asked again
        path = _record_of(directory)
        make_own(path.parent)
        if obstacle() is None:
            replace_file(path, _content(directory, manifest))
            path.chmod(0o600)
            _drop_old(path.parent)


def obstacle() -> str | None:
    """Return why no record can be kept or believed, such as a folder that others can write to; None if one can."""
    folder = _folder()
    if not folder.is_absolute():
        return f"XDG_CACHE_HOME is not an absolute path ({folder})"
    try:
        if folder.is_symlink():
            return f"{folder} is a link"
        if not folder.exists():
            above = next(place for place in folder.parents if place.exists())
            return None if above.is_dir() and os.access(above, os.W_OK) else f"{above} cannot be written"
        for place in (folder, *folder.parents, *folder.resolve().parents):
            info = place.stat()
            writable = info.st_mode & 0o022 and (place == folder or not info.st_mode & stat.S_ISVTX)
            if writable or info.st_uid not in (os.geteuid(), 0):
                return f"other users may write to {place}"
    except OSError as error:
        return f"{error.filename} cannot be used ({error.strerror})"
    return None


def _folder() -> Path:
    return cache_folder() / "own_indexes"


def _record_of(directory: Path) -> Path:
    return _folder() / hashlib.sha256(os.fsencode(os.path.realpath(directory))).hexdigest()


def _content(directory: Path, manifest: Manifest) -> bytes:
    """The checksum, the working directory if a setting names a file in it (elsewhere, that is another file), and the path."""
    texts = (text for record in manifest.retrievers if _is_foreign(record.config) for text in _texts(record.config))
    here = str(Path.cwd()) if any(map(os.path.lexists, texts)) else ""
    return b"\n".join([manifest.checksum.encode(), os.fsencode(here), os.fsencode(os.path.realpath(directory))])


def _texts(value: Any) -> Iterator[str]:
    """The texts among settings that could be relative paths."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key != "name":
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str) and value and not Path(value).is_absolute():
        yield value


def _is_foreign(config: Config) -> bool:
    """Return whether a retriever or a part of it belongs to another package, or to none that is installed."""
    try:
        return has_foreign_part(plan("retrievers", config, only_own=True))
    except ConfigurationError:
        return True


def _drop_old(folder: Path) -> None:
    records = list(folder.iterdir())
    for record in records if len(records) > _KEPT else []:
        directory = os.fsdecode(record.read_bytes().split(b"\n", 2)[-1])
        if not Path(directory, MANIFEST_FILE).exists():
            record.unlink()
