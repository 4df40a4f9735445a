"""Any encoder of texts, read token by token: the vectors before they are pooled, and no weights that it does not have."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

_PASSAGE_PROMPTS = ("document", "passage", "corpus")


def token_by_token(path: str, settings: dict[str, Any]) -> MultiVectorEncoder:
    """Put a model together whose vectors are those of the tokens; the library's own way adds random weights.

    Args:
        path: of a model that sentence-transformers reads as an encoder.
        settings: as the library takes them.

    Raises:
        TypeError: it does not begin with a transformer.
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
