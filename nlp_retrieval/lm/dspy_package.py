"""The import of DSPy, so that its absence raises a single error with advice.

Modules that need DSPy when they are imported, for signatures or programs, import it from here; they themselves are imported
only where they are used.
"""

from __future__ import annotations

from nlp_retrieval.errors import DependencyError, install

try:
    import dspy
    from dspy import lm15
    from dspy._vendor.lm15.transports import StdlibTransport
    from dspy.clients.engines import LM15Engine
    from dspy.utils.exceptions import LMError
except ImportError as error:
    raise DependencyError(f"language models need DSPy: {install('llm')} ({error})") from None

__all__ = ["LM15Engine", "LMError", "StdlibTransport", "dspy", "lm15"]
