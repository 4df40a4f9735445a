"""How many lines a program has, and how many names one has to know to write it."""

from __future__ import annotations

import ast


def counts(source: str) -> tuple[int, int]:
    """Return the lines and the names of a program.

    Args:
        source: a program. Its docstring, and the import of a task's data, do not count.

    Returns:
        How many lines are not blank; and how many different names of libraries it uses: modules and names that are imported,
        attributes and methods, and operators.
    """
    tree = ast.parse(source)
    skipped: set[int] = set()
    names: set[str] = set()
    for statement in tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if docstring or (isinstance(statement, ast.ImportFrom) and statement.module == "bench.six_tasks.data"):
            skipped |= set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node.lineno not in skipped:
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.BinOp):
            names.add(type(node.op).__name__)
    lines = [number for number, line in enumerate(source.splitlines(), start=1) if line.strip() and number not in skipped]
    return len(lines), len(names)
