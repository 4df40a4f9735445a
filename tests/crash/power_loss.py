"""A file system that keeps what was synced and nothing else: what may be left of a folder after the power fails.

The content of a file is durable as of its last sync, a name (made, moved or removed) once the folder that holds it was synced.
What was not synced may be there or not, each thing by itself: a file without durable content is empty, cut off, or full of
zeros. This is stricter than any real file system; what survives here survives there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from crash.recording import Step, Tree

Names = Literal["none", "all", "some"]
Contents = Literal["synced", "cut", "zeros", "some"]

VARIANTS: list[tuple[Names, Contents]] = [
    ("none", "synced"),
    ("all", "synced"),
    ("all", "cut"),
    ("all", "zeros"),
    ("some", "some"),
    ("some", "synced"),
]


@dataclass(frozen=True)
class Left:
    """What may be left.

    Args:
        step: after which the power failed, from 0.
        event: of that step.
        variant: what became of that which was not synced.
        files: contents by relative path; None for a folder.
        last: whether the operation had been reported done.
    """

    step: int
    event: str
    variant: tuple[Names, Contents]
    files: dict[str, bytes | None]
    last: bool

    def write(self, folder: Path) -> None:
        """Make a folder that looks like this."""
        folder.mkdir()
        for path, content in sorted(self.files.items()):
            if content is None:
                (folder / path).mkdir()
            else:
                (folder / path).write_bytes(content)


@dataclass
class _Folder:
    """The names of a folder: those that are durable, and what was done to them since."""

    durable: dict[str, int]
    current: dict[str, int]
    pending: list[dict[str, int | None]] = field(default_factory=list)

    def change(self, now: dict[str, int]) -> None:
        gone = [name for name in self.current if name not in now]
        come = {name: inode for name, inode in now.items() if self.current.get(name) != inode}
        for name, inode in come.items():
            moved = [old for old in gone if self.current[old] == inode]
            self.pending.append({name: inode} | dict.fromkeys(moved))
            gone = [old for old in gone if old not in moved]
        self.pending += [{name: None} for name in gone]
        self.current = dict(now)

    def sync(self) -> None:
        self.durable = dict(self.current)
        self.pending = []

    def names(self, choice: Names, draw: random.Random) -> dict[str, int]:
        if choice == "all":
            return self.current
        found = dict(self.durable)
        for change in self.pending:
            if choice == "some" and draw.random() < 0.5:
                for name, inode in change.items():
                    if inode is None:
                        found.pop(name, None)
                    else:
                        found[name] = inode
        return found


class Disk:
    """Follows a record step by step.

    Args:
        root: the inode of the folder.
        first: what was there before, all of it durable.
        content: of a blob, by its name.
    """

    def __init__(self, root: int, first: Tree, content: Callable[[str], bytes]) -> None:
        self._root = root
        self._read = content
        self._folders: dict[int, _Folder] = {}
        self._current: dict[int, str] = {}
        self._durable: dict[int, str] = {}
        self.advance(first)
        for inode in first:
            self.sync(inode)

    def advance(self, tree: Tree) -> None:
        """Take over what changed, none of it durable yet."""
        for inode, node in tree.items():
            if node.entries is None:
                self._current[inode] = node.content
            else:
                self._folders.setdefault(inode, _Folder({}, {})).change(node.entries)

    def sync(self, inode: int) -> None:
        """Make a file's content, or a folder's names, durable."""
        if inode in self._folders:
            self._folders[inode].sync()
        elif inode in self._current:
            self._durable[inode] = self._current[inode]

    def left(self, names: Names, contents: Contents, draw: random.Random) -> dict[str, bytes | None]:
        """What is left if the power fails now: contents by relative path, None for a folder."""
        found: dict[str, bytes | None] = {}
        pending = [("", self._root)]
        while pending:
            prefix, folder = pending.pop()
            for name, inode in sorted(self._folders[folder].names(names, draw).items()):
                path = f"{prefix}{name}"
                if inode in self._folders:
                    found[path] = None
                    pending.append((f"{path}/", inode))
                else:
                    found[path] = self._content(inode, contents, draw)
        return found

    def _content(self, inode: int, choice: Contents, draw: random.Random) -> bytes:
        current = self._read(self._current[inode])
        durable = self._durable.get(inode)
        if durable == self._current[inode]:
            return current
        kept = self._read(durable) if durable is not None else b""
        chosen = draw.choice(["synced", "cut", "zeros", "current"]) if choice == "some" else choice
        return {"synced": kept, "cut": current[: len(current) // 2], "zeros": bytes(len(current)), "current": current}[chosen]


def crash_states(
    record: Path,
    root: int,
    steps: list[Step],
    *,
    chosen: Container[int] | None = None,
    seed: int = 0,
) -> Iterator[Left]:
    """Yield what may be left of a recorded operation, at every step and in every variant, each distinct state once.

    Args:
        record: the folder with the contents.
        root: the inode of the recorded folder.
        steps: of the record; the first is the state before, the last that after the operation was reported done.
        chosen: the steps; None for all.
        seed: of the variants that are drawn.
    """
    blobs: dict[str, bytes] = {}

    def content(name: str) -> bytes:
        if name not in blobs:
            blobs[name] = (record / name).read_bytes()
        return blobs[name]

    disk = Disk(root, steps[0].tree, content)
    draw = random.Random(seed)
    seen: set[int] = set()
    for number, step in enumerate(steps[1:], 1):
        disk.advance(step.tree)
        last = number == len(steps) - 1
        for variant in VARIANTS if chosen is None or number in chosen else ():
            files = disk.left(*variant, draw)
            key = hash((last, *files.items()))
            if key not in seen:
                seen.add(key)
                yield Left(number, step.event, variant, files, last)
        if step.synced is not None:
            disk.sync(step.synced)
