"""sentence-transformers' own ONNX, in a process of its own; run by ``bench.encoders``, in a venv apart.

The first line of the input holds the texts, as JSON; for each further line they are encoded, which is answered by a line.
The venv has an older sentence-transformers, because no optimum works with the transformers of this one (November 2026).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model


def main(folder: str, scratch: Path, quantised: str) -> None:
    """Encode on demand.

    Args:
        folder: the model.
        scratch: receives the vectors, and the export.
        quantised: for which instructions the weights are made 8 bits wide (``avx2``, ``avx512_vnni``), or nothing.
    """
    model = SentenceTransformer(folder, device="cpu", backend="onnx", model_kwargs={"export": True})
    if quantised:
        place = str(scratch / quantised)
        model.save_pretrained(place)
        export_dynamic_quantized_onnx_model(model, quantised, place)
        file = {"file_name": f"onnx/model_qint8_{quantised}.onnx"}
        model = SentenceTransformer(place, device="cpu", backend="onnx", model_kwargs=file)
    texts = json.loads(sys.stdin.readline())
    for _ in sys.stdin:
        vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        np.save(scratch / f"vectors{quantised}.npy", vectors)
        print("encoded", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
