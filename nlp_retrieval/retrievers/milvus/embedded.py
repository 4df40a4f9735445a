"""Milvus Lite in the folder ``.milvus`` of an index directory: a process of its own, shared, and stopped with its last user.

Milvus Lite lets one process at a time open its folder, and loses nothing when that is killed. It reads files of FAISS, so a
folder that was created elsewhere is served only once it is trusted.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from nlp_retrieval.core.files.atomic import sync_folder, sync_tree
from nlp_retrieval.errors import DependencyError, ServerError, install
from nlp_retrieval.retrievers.milvus import lite_process
from nlp_retrieval.retrievers.servers.embedded import KeptServer
from nlp_retrieval.retrievers.servers.folders import DATA, make_private, remember, require_trust

EMBEDDED = ".milvus"
"""The folder of the embedded server, in the index directory."""

_SOCKET = "milvus.sock"
_STATUS = "status"
_UNDIVIDED = {"MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES": str(2**30), "MILVUS_LITE_WAL_SIZE_LIMIT_BYTES": str(2**31)}
"""Settings that keep a collection of up to a gigabyte in one piece: Milvus Lite weighs words piece by piece."""


class MilvusLiteServer(KeptServer):
    """A user of the Milvus Lite of a folder; several, in any number of processes, share it.

    Args:
        folder: holds data, socket and log; created at first use, for this user alone.
    """

    socket = _SOCKET

    def uri(self) -> str:
        """Start the server if it is not running, and return its address (``unix:``).

        Raises:
            DependencyError: Milvus Lite is not installed.
            UntrustedError: the folder was created elsewhere.
            ServerError: the server does not start; the message holds its output.
            IndexWriteError: the folder cannot be written.
        """
        self.use()
        return f"unix:{self.sockets / _SOCKET}"

    def start(self) -> None:
        require_trust(self.folder, "milvus", "Milvus Lite")
        if importlib.util.find_spec("milvus_lite") is None:
            raise DependencyError(f"the embedded server needs Milvus Lite: {install('milvus')} (or pass url=... of a server)")
        data = self.folder / DATA
        if not data.exists():
            remember(self.folder, "milvus")
            data.mkdir(mode=0o700)
            sync_folder(self.folder)
        sockets = self.sockets
        make_private(sockets)
        status = self.folder / _STATUS
        for left in (status, sockets / _SOCKET):
            left.unlink(missing_ok=True)
        command: list[str | Path] = [sys.executable, "-P", lite_process.__file__, data, sockets / _SOCKET, status]
        said = self.keep(status, command, environment={"PYTHONPATH": os.environ.get("PYTHONPATH", "")} | _UNDIVIDED)
        if said is not None:
            raise ServerError(
                f"{self.folder}: Milvus Lite does not start: {said}. The data may be damaged, or of another version: index "
                "again with replace=True after removing this folder; or pass url=env:NAME of a server"
            )

    def sync(self, collection: str) -> None:
        """Make a collection survive a loss of power; Milvus Lite itself writes files and does not sync them."""
        folder = self.folder / DATA / "collections"
        sync_tree(folder / collection)
        sync_folder(folder)
