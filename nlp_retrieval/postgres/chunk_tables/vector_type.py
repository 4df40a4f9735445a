"""pgvector's type in SQLAlchemy, by its text form: what is written and read is plain numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.types import UserDefinedType

__all__ = ["Vector", "as_text", "from_text"]

Floats = NDArray[np.float32]


class Vector(UserDefinedType[Any]):
    """``vector(dimension)``, where the extension is on the search path or in a schema that is named.

    Args:
        dimension: of the vectors; None: any.
        schema: of the extension.
    """

    cache_ok = True

    def __init__(self, dimension: int | None = None, schema: str | None = None) -> None:
        self.dimension = dimension
        self.schema = schema

    def get_col_spec(self, **_: Any) -> str:
        """Return the type as ``CREATE TABLE`` has it."""
        place = "" if self.schema is None else f'"{self.schema.replace(chr(34), chr(34) * 2)}".'
        return f"{place}vector" + ("" if self.dimension is None else f"({self.dimension:d})")

    def bind_processor(self, dialect: Any) -> Callable[[Any], str | None]:
        """Return what turns numbers into the text that PostgreSQL reads."""
        del dialect
        return lambda value: value if value is None or isinstance(value, str) else as_text(value)

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Floats | None]:
        """Return what turns PostgreSQL's text into numbers."""
        del dialect, coltype
        return lambda value: None if value is None else from_text(value)


def as_text(vector: Floats) -> str:
    """Return a vector as pgvector reads it; every float is read back as it was."""
    return f"[{','.join(map(repr, np.asarray(vector, np.float32).astype(float).tolist()))}]"


def from_text(text: str) -> Floats:
    """Return the vector that pgvector wrote."""
    return np.array(text[1:-1].split(","), np.float32)
