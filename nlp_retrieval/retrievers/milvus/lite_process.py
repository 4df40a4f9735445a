"""The process of an embedded Milvus Lite: run as a script, it serves a folder on a Unix socket until it is interrupted.

Milvus Lite has no passwords. So no network port is opened: the socket is in a folder that only its user may enter.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent import futures
from pathlib import Path
from typing import Any

_LONGEST_MESSAGE = 256 * 2**20
_THREADS = 10
_STOPPED_WITHIN = 10.0


def serve(data: str, socket: str, status: Path) -> None:
    """Serve until an interrupt.

    Args:
        data: folder of the collections.
        socket: path of the socket.
        status: the file to which ``ready`` is written.
    """
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before there are threads, which inherit the mask
    import grpc
    from milvus_lite.adapter.grpc.servicer import MilvusServicer
    from milvus_lite.db import MilvusLite
    from pymilvus.grpc_gen import common_pb2, milvus_pb2, milvus_pb2_grpc

    lock = threading.RLock()

    class OneAtATime(MilvusLite):  # type: ignore[misc]
        """Opens collections one at a time: two requests for the same one would open it twice, and each see another state."""

        def get_collection(self, *args: Any, **options: Any) -> Any:
            with lock:
                return super().get_collection(*args, **options)

        def drop_collection(self, *args: Any, **options: Any) -> Any:
            with lock:
                return super().drop_collection(*args, **options)

    class Servicer(MilvusServicer):  # type: ignore[misc]
        """Answers a question of every build; without an answer, pymilvus first takes an error."""

        def AllocTimestamp(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
            del request, context
            return milvus_pb2.AllocTimestampResponse(status=common_pb2.Status())

    database = OneAtATime(data)
    options = [(f"grpc.max_{way}_message_length", _LONGEST_MESSAGE) for way in ("receive", "send")]
    options += [("grpc.http2.max_ping_strikes", 0)]  # pymilvus checks every ten seconds whether the server is alive
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=_THREADS), options=options)
    milvus_pb2_grpc.add_MilvusServiceServicer_to_server(Servicer(database), server)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    status.write_text("ready\n", "ascii")
    signal.sigwait(ends)
    server.stop(_STOPPED_WITHIN).wait()
    database.close()
    Path(socket).unlink(missing_ok=True)


if __name__ == "__main__":
    os.umask(0o077)
    serve(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
