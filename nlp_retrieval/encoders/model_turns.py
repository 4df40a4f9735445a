"""One thread at a time in a model, and in the process where it was loaded.

Tokenizers of transformers keep how long a text may be, and how it is filled up, in the tokenizer itself: each call sets it
anew. Two threads in one tokenizer cut each other's texts, or stop with an error; the model behind it uses all cores for
one call anyway. A child of a fork uses one, and cannot use a GPU that its parent used.
"""

from __future__ import annotations

import os
from weakref import WeakKeyDictionary

from nlp_retrieval.core.forks import Lock, compute_alone, forked


class _Turn(Lock):
    def __init__(self) -> None:
        super().__init__()
        self.process = os.getpid()


_turns: WeakKeyDictionary[object, _Turn] = WeakKeyDictionary()
_adding = Lock()


def turn_of(model: object) -> Lock:
    """Return the lock to hold while a model, or its tokenizer, is called; to be asked for when it was loaded, too.

    Raises:
        ForkError: the model is on a GPU, and was loaded before a fork.
    """
    compute_alone()
    with _adding:
        turn = _turns.setdefault(model, _Turn())
    device = getattr(model, "device", "cpu")
    if turn.process != os.getpid() and not str(device).startswith("cpu"):
        raise forked(f"a model on {device}", turn.process)
    return turn
