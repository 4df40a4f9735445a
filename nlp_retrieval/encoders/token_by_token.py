"""Any encoder of texts, read token by token: its vectors before pooling, without weights added to it."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

_PASSAGE_PROMPTS = ("document", "passage", "corpus")


def token_by_token(path: str, settings: dict[str, Any]) -> MultiVectorEncoder:
    """Build a model that returns the vectors of the tokens; the library itself would add random weights.

    Args:
        path: folder of a model that sentence-transformers reads as an encoder.
        settings: keyword arguments of the library's models.

    Raises:
        TypeError: the model does not begin with a transformer.
    """
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    whole = SentenceTransformer(path, **settings)
    if not isinstance(whole[0], Transformer):
        raise TypeError(f"it begins with a {type(whole[0]).__name__}, which has no token vectors")
    modules = [whole[0], MultiVectorMask(list(string.punctuation)), Normalize("token_embeddings")]
    known = {name: prompt for name, prompt in whole.prompts.items() if prompt}
    prompts = {"query": known.get("query", ""), "document": next((known[n] for n in _PASSAGE_PROMPTS if n in known), "")}
    return MultiVectorEncoder(modules=modules, device=settings["device"], prompts=prompts)
