"""What may befall a file, and how it is undone."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["flipped", "cut", "extended", "emptied", "removed", "a directory", "a broken link", "a link to", "swapped with"]


@dataclass(frozen=True)
class Damage:
    """What befalls a file: bytes are flipped by a value, cut off or added; another file takes its place, or is linked to."""

    kind: Kind
    place: int = 0
    value: int = 0xFF
    other: Path | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.place} {self.value:#04x} {self.other or ''}"


def structural(path: Path, others: list[Path], effort: int) -> list[Damage]:
    """What is not a flipped byte: six kinds of it at random, or with more effort all; some are of ``others``."""
    content = path.read_bytes()
    found = [Damage("cut", size) for size in sorted({1, 8, len(content) // 2, len(content) - 1}) if 0 < size < len(content)]
    found += [Damage("extended", 1, 0), Damage("extended", 64), Damage("removed"), Damage("a directory")]
    found += [Damage("a broken link")] + [Damage("emptied")] * bool(content)
    different = [other for other in others if other != path and other.read_bytes() != content]
    alike = [other for other in different if other.stat().st_size == len(content)]
    found += [Damage("a link to", other=other) for other in different[:1]]
    found += [Damage("swapped with", other=other) for other in alike[:3]]
    return found if effort > 1 else random.Random(str(path.name)).sample(found, min(6, len(found)))


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
        if as_if_untouched and path.is_file() and not path.is_symlink():
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        yield
    finally:
        for place, content in kept.items():
            if place.is_symlink() or (place.exists() and not place.is_file()):
                shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
            place.write_bytes(content)


def _inflict(path: Path, damage: Damage, content: bytes) -> None:
    if damage.kind == "flipped":
        with path.open("r+b") as file:
            file.seek(damage.place)
            file.write(bytes([content[damage.place] ^ damage.value]))
    elif damage.kind == "cut":
        os.truncate(path, len(content) - damage.place)
    elif damage.kind == "extended":
        path.write_bytes(content + bytes([damage.value]) * damage.place)
    elif damage.kind == "emptied":
        os.truncate(path, 0)
    elif damage.kind == "swapped with" and damage.other is not None:
        taken = damage.other.read_bytes()
        damage.other.write_bytes(content)
        path.write_bytes(taken)
    else:
        path.unlink()
        if damage.kind == "a directory":
            path.mkdir()
        elif damage.kind != "removed":
            path.symlink_to(damage.other or path.with_name("nowhere"))
