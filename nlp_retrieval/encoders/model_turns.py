"""A model is used by one thread at a time, and a model on a GPU only in the process that loaded it.

Tokenizers of transformers store truncation and padding in the tokenizer itself, and each call sets them again. Two threads in
one tokenizer cut each other's texts, or stop with an error; the model uses all cores for one call anyway. In a forked child a
model uses one core, and its parent's GPU is unavailable.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from nlp_retrieval.core.processes import Lock, forked, use_one_thread_after_fork
from nlp_retrieval.errors import ModelError, RetrievalError, first_line


class _Turn(Lock):
    def __init__(self) -> None:
        super().__init__()
        self.process = os.getpid()


_turns: WeakKeyDictionary[object, _Turn] = WeakKeyDictionary()
_adding = Lock()


def turn_of(model: object) -> Lock:
    """Return the lock to hold while a model or its tokenizer is called; call it once right after loading, too.

    Raises:
        ForkError: the model is on a GPU, and was loaded before a fork.
    """
    use_one_thread_after_fork()
    with _adding:
        turn = _turns.setdefault(model, _Turn())
    device = getattr(model, "device", "cpu")
    if turn.process != os.getpid() and not str(device).startswith("cpu"):
        raise forked(f"a model on {device}", turn.process)
    return turn


_PANIC = "PanicException"
"""Name of pyo3's exception for a panic in Rust code, such as that of tokenizers; it is no Exception."""


@contextmanager
def as_model_error(model: str) -> Iterator[None]:
    """Call a model whose files may not fit together, such as a vocabulary and a table: any exception is a model error.

    Args:
        model: its name, as the user gave it.

    Raises:
        ModelError: the call fails.
    """
    try:
        yield
    except (RetrievalError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        raise ModelError(
            f"{model} loads, and fails at these texts: {first_line(error)}; its files may not belong together"
        ) from error


_SHORT = 1000
"""Characters of a text below which one thread is as fast as several."""


@contextmanager
def alone_for(texts: Sequence[str]) -> Iterator[None]:
    """Let torch use only this thread for a single short text, as in a search."""
    torch = sys.modules["torch"]
    before: int = torch.get_num_threads()
    if len(texts) != 1 or len(texts[0]) > _SHORT or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
