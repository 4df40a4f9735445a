"""The process that keeps one embedded server: it starts the server, and stops it when nobody uses its folder any more.

Run as a script by :mod:`nlp_retrieval.retrievers.servers.embedded`, with the standard library alone. Everything depends on
locks that the kernel releases when a process dies, however it dies:

``users``
    Held, shared, by every user. The keeper waits only for it.
``server``
    Held by the keeper and inherited by the server and all its processes: if it is free, none of them is alive.
``starting``
    Held exclusively by a process that starts or stops a server.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

LOG = "log"
STARTING, SERVER, USERS = "starting.lock", "server.lock", "users.lock"
READY, FAILED = "ready", "failed"
KEEP, RUN = "keep", "run"
_LONGEST_START = 60.0
_POLL = 0.01

_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 1, 8, 47, 2
_CAP_DAC_OVERRIDE, _CAPABILITY_VERSION_3 = 1, 0x20080522


def become(uid: int) -> None:
    """Drop root for good, as PostgreSQL requires, and keep one right: to enter folders that only root may enter.

    So neither the folder of an index nor one above it must be opened to other users.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0))
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    mask = 1 << _CAP_DAC_OVERRIDE
    sets = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
    _checked(libc.capset(ctypes.byref(header), ctypes.byref(sets)))
    _checked(libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0))


def become_or_say(uid: int) -> None:
    """Call :func:`become`; end this process with a message if the system does not allow it."""
    try:
        become(uid)
    except OSError as error:
        sys.exit(f"ERROR: root cannot become another user here ({error.strerror}), as PostgreSQL needs: run as another user")


def _checked(status: int) -> None:
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _prepared(uid: int | None) -> Any:
    """Return the function that the server's process runs first: it changes the user, and ends the process with its keeper."""

    def prepare() -> None:
        if uid is not None:
            become_or_say(uid)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)

    return prepare


def _is_ready(status: Path) -> bool:
    try:
        lines = status.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return bool(lines) and lines[-1].strip() == READY


def keep(folder: Path, uid: int | None, status: Path, sockets: Path, command: list[str]) -> None:
    """Start a server and keep it; says ``ready`` or ``failed`` on standard output, and returns when the server has stopped.

    Args:
        folder: of the embedded server.
        uid: the user that the server runs as; None for the current one.
        status: a file to whose last line the server writes ``ready``, such as PostgreSQL's ``postmaster.pid``.
        sockets: the folder of its socket; removed with the server if it is another folder, and empty.
        command: starts the server, which shuts down cleanly at an interrupt.
    """
    lock = os.open(folder / SERVER, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.set_inheritable(lock, True)
    users = os.open(folder / USERS, os.O_RDWR | os.O_CREAT, 0o600)
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    server = subprocess.Popen(  # noqa: S603 - with our own arguments
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(lock,),
        preexec_fn=_prepared(uid),  # noqa: PLW1509 - this process has one thread
    )
    begin = time.monotonic()
    while not _is_ready(status):
        if server.poll() is not None or time.monotonic() - begin > _LONGEST_START:
            server.kill()
            server.wait()
            _report(FAILED)
            return
        time.sleep(_POLL)
    signal.signal(signal.SIGCHLD, _ended)
    try:
        _report(READY)
        _wait_until_unused(folder, users, server, lock, sockets)
    except _ServerEndedError:
        server.wait()


class _ServerEndedError(Exception):
    """The server ended by itself."""


def _ended(number: int, frame: object) -> None:
    del number, frame
    raise _ServerEndedError


def _wait_until_unused(folder: Path, users: int, server: subprocess.Popen[bytes], lock: int, sockets: Path) -> None:
    while server.poll() is None:
        fcntl.flock(users, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_UN)
        starting = os.open(folder / STARTING, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(starting, fcntl.LOCK_EX)
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # a new user came
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            server.send_signal(signal.SIGINT)  # a clean shutdown that does not wait for clients
            server.wait()
            if sockets != folder:
                with suppress(OSError):
                    sockets.rmdir()
            os.close(lock)  # before other processes, which check whether it is held, may start it
            return
        finally:
            os.close(starting)


def _report(word: str) -> None:
    """Report to the parent, which may be gone, and close the pipe."""
    with suppress(OSError):
        os.write(1, f"{word}\n".encode())
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.close(nothing)


def main(what: str, user: str, arguments: list[str]) -> None:
    """Keep a server, or run a program as its user."""
    uid = None if user == "-" else int(user)
    if what == KEEP:
        if os.fork():  # the parent waits for the first process only
            os._exit(0)
        folder, status, sockets, *command = arguments
        keep(Path(folder), uid, Path(status), Path(sockets), command)
    else:
        if uid is not None:
            become_or_say(uid)
        os.execv(arguments[0], arguments)  # noqa: S606 - what was asked for, without a shell


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
