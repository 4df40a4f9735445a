"""All operations of the library that are interrupted, by name."""

from __future__ import annotations

from crash.benchmark_operations import sweep_operations
from crash.index_operations import index_operations
from crash.operation import Operation

_ALL: list[Operation] = [*index_operations(), *sweep_operations()]
OPERATIONS = {one.name: one for one in _ALL}
