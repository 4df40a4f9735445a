"""What may befall a file, and how it is undone."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Damage:
    """What befalls a file: a byte is flipped by a value, bytes are cut off or added, or another file takes its place."""

    kind: Literal["flipped", "cut", "extended", "removed", "a directory", "swapped with"]
    place: int = 0
    value: int = 0xFF
    other: Path | None = None


def structural(path: Path, others: list[Path], effort: int) -> list[Damage]:
    """What is not a flipped byte: five kinds of it at random, or with more effort all; some are of ``others``."""
    content = path.read_bytes()
    found = [Damage("cut", size) for size in sorted({1, 8, len(content) // 2, len(content)}) if 0 < size <= len(content)]
    found += [Damage("extended", 1, 0), Damage("extended", 64), Damage("removed"), Damage("a directory")]
    alike = [other for other in others if other.stat().st_size == len(content) and other.read_bytes() != content]
    found += [Damage("swapped with", other=other) for other in alike[:3]]
    return found if effort > 1 else random.Random(path.name).sample(found, min(5, len(found)))


def flips(size: int, count: int, seed: int, within: tuple[int, int] | None = None) -> list[Damage]:
    """Flipped bytes of a file of this size: the first, the last, and others at random, within these positions."""
    draw = random.Random(seed)
    first, end = within or (0, size)
    places = [first, end - 1, *(draw.randrange(first, end) for _ in range(count - 2))] if end > first else []
    return [Damage("flipped", place, draw.choice([1 << draw.randrange(8), 0xFF])) for place in places[:count]]


@contextmanager
def damaged(path: Path, damage: Damage, *, as_if_untouched: bool = False) -> Iterator[None]:
    """Damage a file, and restore it; its times may stay as they were."""
    kept = {place: place.read_bytes() for place in (path, damage.other) if place is not None}
    times = path.stat()
    _inflict(path, damage, kept[path])
    try:
        if as_if_untouched and path.is_file():
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        yield
    finally:
        if path.is_dir():
            path.rmdir()
        for place, content in kept.items():
            place.write_bytes(content)


def _inflict(path: Path, damage: Damage, content: bytes) -> None:
    if damage.kind in ("removed", "a directory"):
        path.unlink()
        if damage.kind == "a directory":
            path.mkdir()
    elif damage.other is not None:
        path.write_bytes(damage.other.read_bytes())
        damage.other.write_bytes(content)
    elif damage.kind == "flipped":
        flipped = bytes([content[damage.place] ^ damage.value])
        path.write_bytes(content[: damage.place] + flipped + content[damage.place + 1 :])
    elif damage.kind == "cut":
        path.write_bytes(content[: -damage.place])
    else:
        path.write_bytes(content + bytes([damage.value]) * damage.place)
