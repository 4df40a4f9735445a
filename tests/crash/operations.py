"""All operations that are interrupted, by name."""

from __future__ import annotations

from crash.benchmark_operations import small_operations, sweep_operations
from crash.evidence_operations import evidence_operations
from crash.index_operations import index_operations
from crash.study_operations import study_operations

_ALL = [*index_operations(), *sweep_operations(), *small_operations(), *evidence_operations(), *study_operations()]
OPERATIONS = {one.name: one for one in _ALL}
