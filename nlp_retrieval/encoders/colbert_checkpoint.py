"""How the files of a multi-vector checkpoint differ from those of other models.

This matters because the library silently adds a random projection to any model without one, and then two loads of the
same model give different vectors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.errors import ModelError

_MODEL_TYPES = {"MultiVectorEncoder", "ColBERT"}  # as sentence-transformers and PyLate save them
_EARLY_PYLATE = {"query_prefix", "document_prefix"}


def is_multi_vector(folder: Path) -> bool:
    """Whether a model folder holds a late-interaction checkpoint, with all its weights.

    Raises:
        ModelError: one of the files that decide it is not JSON.
    """
    modules = _read(folder / "modules.json")
    if isinstance(modules, list):
        types = {str(entry.get("type", "")).rsplit(".", 1)[-1] for entry in modules if isinstance(entry, dict)}
        saved = _read(folder / "config_sentence_transformers.json")
        saved = saved if isinstance(saved, dict) else {}
        if str(saved.get("model_type")) in _MODEL_TYPES:
            return True
        # the library treats anything else as an encoder of texts, and adds a random projection where it has no Dense
        return "Dense" in types and ("MultiVectorMask" in types or bool(_EARLY_PYLATE & saved.keys()))
    config = _read(folder / "config.json")
    architectures = config.get("architectures") if isinstance(config, dict) else None
    architectures = architectures if isinstance(architectures, list) else []
    return any(name == "HF_ColBERT" or str(name).endswith("ForRetrieval") for name in architectures)


def _read(path: Path) -> Any:
    if not path.is_file():
        return None
    try:
        return read_json_file(path)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as JSON ({error}); download the model again") from None
