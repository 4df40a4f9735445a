"""The texts that the patterns of hipporag are worst at, by module, as ``attacks.growth`` runs them."""

from __future__ import annotations

HIPPORAG = {
    "systems/hipporag/sources.py": """
from nlp_retrieval.systems.hipporag.sources import is_held, _stored
for text in ("sha256:" * N, "sha256:" + "a" * N, "#" * N, "#a" * N + "x", "#" + "a" * N + "x", ("#" + "a" * 32) * N + "x"):
    is_held(text)
    _stored(text)
""",
    "systems/hipporag/extraction.py": """
from nlp_retrieval.systems.hipporag.extraction import knowledge_in
for text in ("[" * N, "{" * N, '{"passage' + " " * N, '{"' + "1" * N + '": {}}', '{"a": ' * N, '["a", ' * N, "(" * N, "->" * N):
    for answer in (text, {"1": {"entities": [text], "triples": [text, {text: text}]}, text: text}):
        knowledge_in(1, answer)
""",
    "systems/hipporag/settings.py": """
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.systems.hipporag.settings import HippoRagSettings
for text in ("${" * N, "${" + "A" * N, "$" * N, "a" * N + " "):
    for key in ("api_key", "model_name"):
        try:
            HippoRagSettings.of({"llm": {"provider": "ollama", key: text}})
        except ConfigurationError:
            pass
""",
}
