"""Encoding: the precision that this project chooses against sentence-transformers' default."""

from __future__ import annotations

import numpy as np
import torch

from bench.common import Data, Row, best_of_each
from nlp_retrieval import SentenceTransformerEncoder


def measure(data: Data) -> list[Row]:
    """1,000 passages; on a CPU without AMX the choice is float32 and the budget does not apply."""
    from sentence_transformers import SentenceTransformer

    texts = data.texts()[:1000]
    encoder = SentenceTransformerEncoder()
    model = SentenceTransformer(str(encoder.folder.path), device="cpu")
    ours, theirs = [np.zeros(0)], [np.zeros(0)]

    def default() -> None:
        theirs[0] = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)

    def chosen() -> None:
        ours[0] = encoder.encode_passages(texts)

    encoder.encode_passages(texts[:8])
    ours_s, theirs_s = best_of_each(2, chosen, default)
    cosine = float((ours[0] * theirs[0]).sum(axis=1).min())
    amx = bool(torch.cpu.get_capabilities().get("amx_bf16", False))
    measured = f"{theirs_s / ours_s:.2f} times ({len(texts) / ours_s:.0f} passages/s), lowest cosine {cosine:.5f}"
    what, budget = "encoding on a CPU with AMX", "at least 3 times"
    if not amx:
        return [Row(what, budget, f"{measured}; this CPU has no AMX", None)]
    return [Row(what, budget, measured, theirs_s / ours_s >= 3)]
