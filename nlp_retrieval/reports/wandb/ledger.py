"""Which runs of a sweep were logged to Weights & Biases: each is logged once, however often the sweep is resumed.

A run is noted before it is begun and again when it is finished, under an id that its sweep and its name decide. What was
begun and not finished is thrown away and logged anew under the same id. A sweep is what was found, not what it cost: other
configurations, other data or another baseline make another one, with runs and a group of its own.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.atomic import sync_folder, sync_tree
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.files.output import write_output
from nlp_retrieval.reports.tracking.run_logger import run_id, sweep_id

_FILE = "wandb-logged.json"
_FORMAT = 1


class Ledger:
    """The runs of one sweep that were logged.

    Args:
        folder: of the benchmark's files.
        sweep: what tells it from others, as plain values.
        group: the name of its group, where it was not logged before.
    """

    def __init__(self, folder: Path, sweep: Config, group: str) -> None:
        self._folder = folder
        self._sweep = sweep_id(sweep)
        self._sweeps = _read(folder / _FILE)
        self._own = self._sweeps.setdefault(self._sweep, {"group": group, "runs": {}})

    @property
    def group(self) -> str:
        """What the sweep's runs have in common."""
        return str(self._own["group"])

    def id_of(self, name: str) -> str:
        """Return the id of a run, the same whenever it is logged."""
        return run_id(self._sweep, name)

    def finished(self, name: str) -> Path | None:
        """Return where a run was logged; None where it was not, or is not there any more."""
        found = self._own["runs"].get(name)
        folder = self._folder / str(found) if found else None
        return folder if folder is not None and folder.is_dir() else None

    def begin(self, name: str) -> None:
        """Note that a run is about to be logged; what an interruption left of it is removed."""
        if name in self._own["runs"]:
            for left in (self._folder / "wandb").glob(f"offline-run-*-{self.id_of(name)}"):
                shutil.rmtree(left, ignore_errors=True)
        self._note(name, "")

    def finish(self, name: str, folder: Path) -> None:
        """Note where a run was logged, after all of it is on disk: the W&B client leaves that to the system."""
        with suppress(OSError):  # a run that cannot be read is noted as it is
            sync_tree(folder)
            for above in folder.parents[: len(folder.relative_to(self._folder).parts)]:
                sync_folder(above)
        self._note(name, str(folder.relative_to(self._folder)))

    def _note(self, name: str, where: str) -> None:
        self._own["runs"][name] = where
        content = {"format": _FORMAT, "sweeps": self._sweeps}
        write_output(self._folder / _FILE, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _read(path: Path) -> dict[str, Any]:
    """What was noted; nothing where the file is missing or cannot be believed."""
    try:
        content = read_json_file(path)
        sweeps = content["sweeps"] if content["format"] == _FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    whole = isinstance(sweeps, dict) and all(
        isinstance(one, dict) and isinstance(one.get("group"), str) and isinstance(one.get("runs"), dict)
        for one in sweeps.values()
    )
    return sweeps if whole else {}
