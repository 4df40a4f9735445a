"""One function for each parser of a system, as :mod:`fuzz.targets` has them for the library."""

from __future__ import annotations

from fuzz.targets import Target

from systems.evidence.fuzzed import OF_EVIDENCE
from systems.hipporag.fuzzed import OF_HIPPORAG
from systems.policy.fuzzed import OF_POLICY

TARGETS: dict[str, Target] = {target.__name__: target for target in (*OF_EVIDENCE, *OF_HIPPORAG, *OF_POLICY)}
