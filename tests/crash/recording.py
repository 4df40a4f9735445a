"""A record of what changed below a folder from event to event of an operation: what :mod:`crash.power_loss` replays.

What native code wrote between two events is seen at the second.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from crash.events import When

Tree = dict[int, "Node"]


@dataclass(frozen=True)
class Node:
    """A file or a folder, as it was at one moment.

    Args:
        entries: of a folder, inodes by name.
        content: of a file, the name of a blob.
    """

    entries: dict[str, int] | None = None
    content: str = ""


@dataclass(frozen=True)
class Step:
    """One moment.

    Args:
        event: what was done then, and to what.
        synced: the inode whose content or names it made durable.
        tree: by inode, what is not as it was at the step before; a name that is gone is missing from its folder.
    """

    event: str
    synced: int | None
    tree: Tree


class Recorder:
    """A listener that takes down a step before every sync and after every other event.

    Args:
        world: the folder.
        target: receives the steps and the contents.
    """

    def __init__(self, world: Path, target: Path) -> None:
        self._world, self._target = world, target
        self._held: dict[int, int] = {}
        self._steps: list[Step] = []
        self._before: Tree = {}
        self._blobs: set[str] = set()
        target.mkdir()

    def __call__(self, number: int, when: When, what: str, path: str) -> None:
        if what == "sync" and when == "before":
            self.take(f"{what} {path}", Path(path).stat().st_ino)
        elif what != "sync" and when == "after":
            self.take(f"{what} {path}", None)

    def take(self, event: str, synced: int | None = None) -> None:
        """Take down what is there now."""
        tree: Tree = {}
        self._take_folder(str(self._world), tree)
        changed = {inode: node for inode, node in tree.items() if self._before.get(inode) != node}
        self._before |= changed
        self._steps.append(Step(event, synced, changed))

    def save(self) -> None:
        """Write the steps."""
        root = self._world.stat().st_ino
        steps = [asdict(step) for step in self._steps]
        (self._target / "steps.json").write_text(json.dumps({"root": root, "steps": steps}))

    def _take_folder(self, folder: str, tree: Tree) -> None:
        entries: dict[str, int] = {}
        with os.scandir(folder) as found:
            children = sorted(found, key=lambda entry: entry.name)
        for child in children:
            entries[child.name] = child.inode()
            if child.is_dir(follow_symlinks=False):
                self._take_folder(child.path, tree)
            else:
                tree[child.inode()] = Node(content=self._blob(child.path))
            self._hold(child.path, child.inode())
        tree[Path(folder).stat().st_ino] = Node(entries)

    def _hold(self, path: str, inode: int) -> None:
        """Keep a file open, so that no other gets its inode while this is recorded."""
        if inode not in self._held:
            self._held[inode] = os.open(path, os.O_PATH | os.O_NOFOLLOW)

    def _blob(self, path: str) -> str:
        with open(path, "rb") as file:  # noqa: PTH123 - see crash.events.named
            content = file.read()
        name = hashlib.sha256(content).hexdigest()
        if name not in self._blobs:
            self._blobs.add(name)
            (self._target / name).write_bytes(content)
        return name


def read_record(target: Path) -> tuple[int, list[Step]]:
    """The inode of the folder, and the steps that were recorded."""
    content = json.loads((target / "steps.json").read_text())
    steps = []
    for step in content["steps"]:
        tree = {int(inode): Node(**node) for inode, node in step["tree"].items()}
        steps.append(Step(step["event"], step["synced"], tree))
    return content["root"], steps
