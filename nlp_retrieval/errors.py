"""Every exception and warning of the project: :class:`RetrievalError` and its branches.

Every message says what was found, where, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class RetrievalError(Exception):
    """Base of every error that the project raises on purpose."""


class InputError(RetrievalError, ValueError):
    """What the caller passed cannot be used."""


class ConfigurationError(InputError):
    """A setting is unknown, has the wrong type or is out of range."""


class SourceError(InputError):
    """A file, folder or database that a loader reads is missing or malformed."""


class ItemError(InputError):
    """An item cannot be indexed: empty or duplicate id, or metadata that JSON cannot hold."""


class QueryError(InputError):
    """A query is not a string, or k is not a positive integer."""


class UntrustedError(InputError):
    """The manifest of an index or a run asks for what only its user may decide: code, files, packages, the network.

    The message names all of it; where the user trusts who made the manifest, ``trust=True`` (``--trust``) does it.
    """


class GoldError(InputError):
    """The gold of a benchmark names unknown items, is empty, or does not cover the queries."""


class DependencyError(RetrievalError, ImportError):
    """Something has to be installed first; the message holds the exact command."""


class JavaError(DependencyError):
    """No Java was found, or only one that is too old for Lucene."""


class ModelError(RetrievalError):
    """A model does not load, or what it returned cannot be used (NaN, wrong shape)."""


class FetchError(RetrievalError):
    """A page of the web cannot be fetched, or a search engine gives no usable answer: unknown host, status, size, time."""


class FetchRefusedError(FetchError):
    """An address may not be fetched: it is none of the web, not on the public internet, or forbidden by its site."""


class IndexStateError(RetrievalError):
    """Base of what can be wrong with an index directory."""


class IndexMissingError(IndexStateError):
    """There is no index at this path, or it does not hold this retriever."""


class IndexMismatchError(IndexStateError):
    """The index was built with another configuration than the one that searches it."""


class IndexConflictError(IndexStateError):
    """The index holds other items, and ``replace=True`` was not given; or another process changed its retrievers."""


class IndexDamagedError(IndexStateError):
    """A file of the index is missing, cut off or not what its checksum says."""


class IndexLockedError(IndexStateError):
    """Another process is writing to this index directory."""


class IndexWriteError(IndexStateError, OSError):
    """The index directory cannot be written: permission denied, disk full, not a directory."""


class ServerError(RetrievalError):
    """A database server does not start, cannot be reached, was lost meanwhile, took too long, or refuses."""


class WorkerError(RetrievalError):
    """A worker process is lost, or a Ray cluster is gone, has no room, or has other versions or models."""


class OutputError(RetrievalError, OSError):
    """A file of results (a report, a run, a table) cannot be written."""


class ForkError(RetrievalError):
    """What a process opened before it forked (Java, a model on a GPU) was to be used in the child, where it would hang."""


class EngineError(RetrievalError):
    """An engine returned what its contract forbids: a non-finite score, a row out of range."""


class RetrievalWarning(UserWarning):
    """Something was left out or degraded; the message says how much of it, and what came first."""


_MOST_LISTED = 100
"""Names in a message."""


def nearest(word: str, valid: Iterable[str]) -> str:
    """Return a half-sentence for error messages: the valid names most like ``word``, in any letter case, then all of them."""
    names = sorted(valid)
    folded = {name.casefold(): name for name in names}
    close = [folded[near] for near in get_close_matches(word.casefold(), folded, n=3, cutoff=0.5)]
    listed = list_names(names[:_MOST_LISTED]) or "none"
    if len(names) > _MOST_LISTED:
        listed += f" and {len(names) - _MOST_LISTED:,} more"
    if close:
        return f"did you mean {' or '.join(repr(name) for name in close)}? (valid: {listed})"
    return f"valid: {listed}"


def list_names(names: Sequence[str]) -> str:
    """Return names with commas between them, in quotation marks where a name has a comma itself."""
    return ", ".join(map(repr, names) if any("," in name for name in names) else names)


def install(extra: str) -> str:
    """Return how to install an extra, for messages: right beside an installed package, and in a clone of the repository."""
    return f"pip install 'nlp_retrieval[{extra}]', or in a clone pip install -c constraints.txt '.[{extra}]'"


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, or its kind where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]
