"""The public names of the system in ``nlp_retrieval/systems/evidence``: this module is that package, under a shorter name."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nlp_retrieval.systems.evidence import *  # noqa: F403

sys.modules[__name__] = import_module("nlp_retrieval.systems.evidence")
