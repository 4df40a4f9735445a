"""``python -m bench house [FOLDER]``: how large the package in a checkout is, and how its parts are joined.

Counts lines by kind and by room, files, folders, public names, commands and their options, parameters of components, context
variables, and modules that one other module alone imports. Another checkout is counted with its own
code: its folder is the argument.
"""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

_HERE = Path(__file__).parents[1]

_ASKED = """
import inspect, json, sys, typer
from importlib.metadata import entry_points
import nlp_retrieval
from nlp_retrieval.cli.app import app
from nlp_retrieval.core.components.component import Component, parameters_of

def commands(group, path=()):
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*path, name))
        elif not command.hidden:
            yield (*path, name), len([part for part in command.params if part.param_type_name == "option"]) - 1

listed = list(commands(typer.main.get_group(app)))
groups = [group for group in entry_points().groups if group.startswith("nlp_retrieval.")]
loaded = {entry.load() for group in groups for entry in entry_points(group=group) if ":" in entry.value}
classes = [cls for cls in loaded if isinstance(cls, type) and issubclass(cls, Component)]
print(json.dumps({
    "root names": len(nlp_retrieval.__all__),
    "commands at the top": len([path for path, _ in listed if len(path) == 1]),
    "groups of commands": len({path[0] for path, _ in listed if len(path) > 1}),
    "commands": len(listed),
    "options": sum(options for _, options in listed),
    "components": len(classes),
    "parameters of components": sum(len(parameters_of(cls)) for cls in classes if not inspect.isabstract(cls)),
}))
"""


def main(arguments: list[str]) -> int:
    """Print the figures of a checkout as a table."""
    root = Path(arguments[0]).resolve() if arguments else _HERE
    rooms = {f"{room}/": lines for room, lines in rooms_of(root / "nlp_retrieval").items()}
    figures = counted(root / "nlp_retrieval") | rooms | _asked(root)
    width = max(map(len, figures))
    print("\n".join(f"{name:<{width}}  {value:>7,}" for name, value in figures.items()))
    return 0


def counted(package: Path) -> dict[str, int]:
    """Return what can be counted without importing the package.

    Args:
        package: its folder.
    """
    files = {file: file.read_text("utf-8") for file in sorted(package.rglob("*.py"))}
    kinds: Counter[str] = Counter()
    for text in files.values():
        kinds.update(kinds_of_lines(text).values())
    systems = [text for file, text in files.items() if "systems" in file.parts]
    return {
        "lines": sum(text.count("\n") for text in files.values()),
        **{f"- {kind}": kinds[kind] for kind in ("code", "docstring", "import", "comment", "blank")},
        "- in systems": sum(text.count("\n") for text in systems),
        "files": len(files),
        "folders": len({file.parent for file in files}),
        "modules with one importer": len(imported_once(files, package)),
        "context variables": sum(text.count("= ContextVar(") for text in files.values()),
    }


def rooms_of(package: Path) -> dict[str, int]:
    """Return the lines of each room: a folder of the package, or of its systems."""
    rooms: Counter[str] = Counter()
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package).parts[:-1]
        rooms["/".join(parts[:2] if parts[:1] == ("systems",) else parts[:1]) or "root"] += file.read_text("utf-8").count("\n")
    return dict(rooms)


def kinds_of_lines(text: str) -> dict[int, str]:
    """Return for each line of a module whether it is code, docstring, import, comment or blank."""
    lines = text.splitlines()
    kinds = {number: "code" if line.strip() else "blank" for number, line in enumerate(lines, start=1)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip().startswith("#"):
            kinds[token.start[0]] = "comment"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            kinds |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), "import")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            kinds |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), "docstring")
    return kinds


def imported_once(files: dict[Path, str], package: Path) -> list[str]:
    """Return the modules that exactly one other module of the package imports."""
    names = {".".join(file.relative_to(package.parent).with_suffix("").parts): file for file in files}
    importers: dict[str, set[str]] = {}
    for name, file in names.items():
        for node in ast.walk(ast.parse(files[file])):
            if isinstance(node, ast.ImportFrom) and node.module:
                for imported in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    if imported in names and imported != name:
                        importers.setdefault(imported, set()).add(name)
    return sorted(name for name, those in importers.items() if len(those) == 1)


def _asked(root: Path) -> dict[str, int]:
    """Return what the package says of itself, asked in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", _ASKED], capture_output=True, text=True, check=True, env=environment, cwd=root)
    figures: dict[str, int] = json.loads(done.stdout)
    return figures
