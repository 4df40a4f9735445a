"""What W&B shows first of offline runs, as its own reader reads them: panels, summary, group and artifacts.

``PYTHONPATH=.:tests python -m reports.wandb.first_screen FOLDER/wandb`` prints it. An automatic workspace makes a panel of
every key of the history (bars if each run has one value), of every table and medium in it, and of every custom chart. Keys are
put into sections by their prefix; those without one are in the section Charts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

LEET = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json"]
_MEDIA = {"table-file": "Tables", "html-file": "Media"}
_CHART = "_wandb.visualize."


@dataclass(frozen=True)
class FirstScreen:
    """The first screen of a run.

    Args:
        name: of the run.
        group: of the run.
        panels: keys of panels by section, in the order in which they were logged.
        summary: keys of the summary, with those that W&B adds.
        inputs: names of the artifacts that the run used.
        outputs: names of the artifacts that it made, without those of tables.
    """

    name: str
    group: str
    panels: dict[str, list[str]]
    summary: list[str]
    inputs: list[str]
    outputs: list[str]


@cache
def records(run: Path) -> list[dict[str, Any]]:
    """What a run recorded, in order."""
    found = subprocess.run([*LEET, str(run)], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in found.stdout.splitlines()]


@cache
def overview(run: Path) -> dict[str, Any]:
    """State, config and summary of a run."""
    found = subprocess.run([*LEET, "--summary", str(run)], check=True, capture_output=True, text=True)
    loaded: dict[str, Any] = json.loads(found.stdout)
    return loaded


def history(run: Path) -> list[dict[str, Any]]:
    """The rows of a run's history, without what W&B adds; a table or medium is its kind, such as ``table-file``."""
    rows = [line["history"]["item"] for line in records(run) if line["type"] == "history"]
    return [dict(_values(row)) for row in rows]


def _values(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    media = {key.removesuffix("._type"): kind for key, kind in row.items() if key.endswith("._type")}
    yield from media.items()
    for key, value in row.items():
        if not key.startswith("_") and not any(key.startswith(f"{name}.") for name in media):
            yield key, value


def first_screen(run: Path) -> FirstScreen:
    """Read a run."""
    about = next(line["run"] for line in records(run) if line["type"] == "run")
    panels: dict[str, list[str]] = {}
    for key, value in {key: value for row in history(run) for key, value in row.items()}.items():
        kind = _MEDIA[value] if isinstance(value, str) else "Charts"
        panels.setdefault(key.rpartition("/")[0] or kind, []).append(key)
    settings = [key for line in records(run) if line["type"] == "config" for key in line["config"]["update"]]
    if charts := [key.removeprefix(_CHART) for key in settings if key.startswith(_CHART)]:
        panels["Custom Charts"] = charts
    made = [line["artifact"] for line in records(run) if line["type"] == "artifact"]
    named = [(artifact["name"], bool(artifact.get("use_after_commit"))) for artifact in made if artifact["type"] != "run_table"]
    return FirstScreen(
        about["display_name"],
        about["run_group"],
        panels,
        list(overview(run)["summary"]),
        [name for name, is_input in named if is_input],
        [name for name, is_input in named if not is_input],
    )


def described(runs: list[Path]) -> str:
    """Return what the first screen shows of runs as text."""
    screens = [first_screen(run) for run in runs]
    panels: dict[str, list[str]] = {}
    for screen in screens:
        for section, keys in screen.panels.items():
            panels.setdefault(section, []).extend(keys)
    lines = [f"group: {', '.join(dict.fromkeys(screen.group for screen in screens))}"]
    lines += [f"{sum(len(set(keys)) for keys in panels.values())} panels"]
    lines += [f"  {section}: {', '.join(dict.fromkeys(keys))}" for section, keys in panels.items()]
    for screen in screens:
        lines.append(f"{screen.name}: {len(screen.summary)} summary keys; used {screen.inputs}; made {screen.outputs}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(described(sorted(Path(sys.argv[1]).glob("offline-run-*"))))  # noqa: T201
