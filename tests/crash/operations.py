"""All operations that are interrupted, by name."""

from __future__ import annotations

from crash.benchmark_operations import small_operations, sweep_operations
from crash.index_operations import index_operations

OPERATIONS = {one.name: one for one in [*index_operations(), *sweep_operations(), *small_operations()]}
