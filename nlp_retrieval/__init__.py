"""Compose, search with and honestly compare retrieval pipelines.

What plug-ins are written with is in the packages of the library (``nlp_retrieval.core``, ``nlp_retrieval.text``, ...), and each
system has a package of its own: ``nlp_retrieval.evidence``, ``.hipporag``, ``.hover`` and ``.policy``.
"""

from nlp_retrieval._public_names import ROOMS, modules_of, public_names
from nlp_retrieval._version import __version__ as __version__


def _former_name(name: str) -> object:
    """Return what used to be a name of this package, with a warning that says where it is now; for one release."""
    import warnings
    from importlib import import_module
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    if find_spec(f"{__name__}.{name}") is not None:  # a module, which the import system goes on to import
        raise AttributeError(f"module {__name__!r} has no attribute {name!r} yet")
    if name in _RENAMED:
        module, still, now = _RENAMED[name]
        message = f"{name} is now called {now}; the old name will be removed in the next release"
        warnings.warn(message, DeprecationWarning, stacklevel=3)
        return getattr(import_module(module), still)
    packages = {f"{__name__}.{room}": room for room in ROOMS}
    packages |= {system.value: system.name for system in entry_points(group="nlp_retrieval.systems")}
    for package, short_name in packages.items():
        if name in modules_of(package):
            shown = f"{__name__}.{short_name}"
            message = f"{name} is now in {shown}: from {shown} import {name}; the old name will be removed in the next release"
            warnings.warn(message, DeprecationWarning, stacklevel=3)
            return getattr(import_module(package), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_RENAMED = {
    "ClaimDecomposition": (
        *("nlp_retrieval.processors.with_model", "ClaimPhrases"),
        "ClaimPhrases (nlp_retrieval.hover.ClaimDecomposition is the DSPy signature)",
    ),
}
"""Classes that have another name now: their module, their name there, and what to call them."""

__getattr__, __dir__ = public_names(__name__, globals(), _former_name)
