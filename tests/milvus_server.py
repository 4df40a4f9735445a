"""A Milvus server for tests: Milvus Lite in a process of its own, on a port of the loopback, as other servers are."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

VARIABLE = "TESTS_MILVUS_SERVER"

_SERVING = """
import base64, sys
from concurrent import futures
import grpc
from milvus_lite.adapter.grpc.servicer import MilvusServicer
from milvus_lite.db import MilvusLite
from pymilvus.grpc_gen import milvus_pb2_grpc

folder, token = sys.argv[1:]
wanted = base64.b64encode(token.encode()).decode()

class Asking(grpc.ServerInterceptor):
    def intercept_service(self, go_on, call):
        if not token or dict(call.invocation_metadata).get("authorization") == wanted:
            return go_on(call)
        def refuse(request, context):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "auth check failure, please check api key is correct")
        return grpc.unary_unary_rpc_method_handler(refuse)

server = grpc.server(futures.ThreadPoolExecutor(10), interceptors=[Asking()], options=[("grpc.http2.max_ping_strikes", 0)])
milvus_pb2_grpc.add_MilvusServiceServicer_to_server(MilvusServicer(MilvusLite(folder)), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
sys.stdin.read()
"""


class TcpServer:
    """A server on the loopback, until :meth:`close`, or until this process ends."""

    def __init__(self, folder: Path, token: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVING, str(folder), token],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        atexit.register(self.close)

    def close(self) -> None:
        """Stop it."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@cache
def shared_milvus() -> TcpServer:
    """One server for a whole run."""
    folder = Path(tempfile.mkdtemp(prefix="nlpr-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return TcpServer(folder)


def milvus_url() -> str:
    """The shared server as the name of an environment variable that holds its URL."""
    os.environ[VARIABLE] = shared_milvus().url
    return f"env:{VARIABLE}"
