"""All operations of the library that are interrupted, by name."""

from __future__ import annotations

from crash.benchmark_operations import SWEEPS
from crash.index_operations import index_operations

OPERATIONS = {one.name: one for one in [*index_operations(), *SWEEPS]}
