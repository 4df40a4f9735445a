"""One thread at a time in a model.

Tokenizers of transformers keep how long a text may be, and how it is filled up, in the tokenizer itself: each call sets it
anew. Two threads in one tokenizer cut each other's texts, or stop with an error; the model behind it uses all cores for
one call anyway.
"""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

_turns: WeakKeyDictionary[object, threading.RLock] = WeakKeyDictionary()
_adding = threading.Lock()


def turn_of(model: object) -> threading.RLock:
    """Return the lock to hold while a model, or its tokenizer, is called."""
    with _adding:
        return _turns.setdefault(model, threading.RLock())
