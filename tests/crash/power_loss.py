"""A file system that keeps what was synced and nothing else: what may be left of a folder after the power fails.

The content of a file is durable as of its last sync, a name (made, moved or removed) once the folder that holds it was synced.
What was not synced may be there or not, each thing by itself: a file without durable content is empty, cut off, or full of
zeros. This is stricter than any real file system; what survives here survives there. What native code wrote between two events
is seen at the second.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crash.events import When

VARIANTS = [("none", "synced"), ("all", "synced"), ("all", "cut"), ("all", "zeros"), ("some", "some"), ("some", "synced")]
"""Which names that were not synced are kept, and what is left of contents that were not."""


@dataclass
class _Folder:
    """The names of a folder: those that are durable, and what was done to them since."""

    durable: dict[str, int] = field(default_factory=dict)
    current: dict[str, int] = field(default_factory=dict)
    pending: list[dict[str, int | None]] = field(default_factory=list)

    def change(self, now: dict[str, int]) -> None:
        gone = [name for name in self.current if name not in now]
        for name, inode in now.items():
            if self.current.get(name) != inode:
                moved = [old for old in gone if self.current[old] == inode]
                self.pending.append({name: inode} | dict.fromkeys(moved))
                gone = [old for old in gone if old not in moved]
        self.pending += [{name: None} for name in gone]
        self.current = now

    def sync(self) -> None:
        self.durable, self.pending = dict(self.current), []

    def names(self, choice: str, draw: random.Random) -> dict[str, int]:
        if choice == "all":
            return self.current
        changes = [change for change in self.pending if choice == "some" and draw.random() < 0.5]
        found: dict[str, int | None] = dict(self.durable)
        for change in changes:
            found |= change
        return {name: inode for name, inode in found.items() if inode is not None}


class Disk:
    """Follows what happens to a world, event by event, and makes folders of what may be left of it."""

    def __init__(self, world: Path, target: Path, chosen: list[int]) -> None:
        self._world, self._target, self._chosen = world, target, set(chosen)
        self._folders: dict[int, _Folder] = {}
        self._current: dict[int, bytes] = {}
        self._durable: dict[int, bytes] = {}
        self._held: dict[int, int] = {}
        self._draw = random.Random(0)
        self._seen: set[int] = set()
        self._left: list[tuple[str, str, bool]] = []
        target.mkdir()
        self._look(str(world))
        self._durable = dict(self._current)
        for folder in self._folders.values():
            folder.sync()

    def __call__(self, number: int, when: When, what: str, path: str) -> None:
        if (what == "sync") != (when == "before"):
            return  # of a sync, what is there before it; of another event, what it leaves
        self._look(str(self._world))
        if number in self._chosen:
            self._fail(f"{what} {path}", done=False)
        if what == "sync" and (inode := Path(path).stat().st_ino) in self._folders:
            self._folders[inode].sync()
        elif what == "sync" and inode in self._current:
            self._durable[inode] = self._current[inode]

    def end(self) -> None:
        """Let the power fail after the operation was reported done, and write the list."""
        self._look(str(self._world))
        self._fail("reported done", done=True)
        (self._target / "left.json").write_text(json.dumps(self._left))

    def _look(self, folder: str) -> int:
        """See what is there now; files are held open, so that no other gets the inode of one while this goes on."""
        names: dict[str, int] = {}
        with os.scandir(folder) as found:
            for child in sorted(found, key=lambda entry: entry.name):
                names[child.name] = inode = child.inode()
                if inode not in self._held:
                    self._held[inode] = os.open(child.path, os.O_PATH | os.O_NOFOLLOW)
                if child.is_dir(follow_symlinks=False):
                    self._look(child.path)
                else:
                    with open(child.path, "rb") as file:  # noqa: PTH123 - see crash.events.named
                        self._current[inode] = file.read()
        inode = Path(folder).stat().st_ino
        self._folders.setdefault(inode, _Folder()).change(names)
        return inode

    def _fail(self, event: str, *, done: bool) -> None:
        """Make a folder of what may be left, in every variant that differs from those before."""
        for names, contents in VARIANTS:
            files = dict(self._files("", self._world.stat().st_ino, names, contents))
            key = hash((done, *files.items()))
            if key in self._seen:
                continue
            self._seen.add(key)
            left = self._target / str(len(self._left))
            left.mkdir()
            for path, content in sorted(files.items()):
                if content is None:
                    (left / path).mkdir()
                else:
                    (left / path).write_bytes(content)
            how = f"power lost after {event}, names kept: {names}, unsynced contents: {contents}"
            self._left.append((str(left), how, done))

    def _files(self, prefix: str, folder: int, names: str, contents: str) -> Iterator[tuple[str, bytes | None]]:
        """What is left below a folder: contents by relative path, None for a folder."""
        for name, inode in sorted(self._folders[folder].names(names, self._draw).items()):
            if inode in self._folders:
                yield f"{prefix}{name}", None
                yield from self._files(f"{prefix}{name}/", inode, names, contents)
            else:
                yield f"{prefix}{name}", self._content(inode, contents)

    def _content(self, inode: int, choice: str) -> bytes:
        current, durable = self._current[inode], self._durable.get(inode)
        if durable == current:
            return current
        chosen = self._draw.choice(["synced", "cut", "zeros", "current"]) if choice == "some" else choice
        kept = {"synced": durable or b"", "cut": current[: len(current) // 2], "zeros": bytes(len(current))}
        return kept.get(chosen, current)
