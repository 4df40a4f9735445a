"""The one place that imports DSPy, so that its absence is one error with one cure.

Modules whose signatures or programs need DSPy when they are imported take it from here; they are imported themselves
only where they are used.
"""

from __future__ import annotations

from nlp_retrieval.errors import DependencyError

try:
    import dspy
    from dspy._vendor.lm15.transports import StdlibTransport
except ImportError as error:
    raise DependencyError(f"language models need DSPy: pip install 'nlp_retrieval[llm]' ({error})") from None

__all__ = ["StdlibTransport", "dspy"]
