"""Whether the tests notice it: ``python -m bench.mutants [N [SEED]]`` changes what decides results, and runs its tests.

A mutant has one comparison, operation, constant, negation, "and" or "or" changed, or one statement dropped; N of them (60) are
drawn evenly from the modules below, and each is tried in a copy of the last commit. Printed are those that survive, and how
many are killed by module: a mutant is killed where a test fails or no longer ends.
"""

from __future__ import annotations

import ast
import io
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.writing import table

_HERE = Path(__file__).parents[1]
TESTS = {
    "evaluation/evaluator.py": "evaluation",
    "evaluation/measures.py": "evaluation",
    "evaluation/resampling.py": "evaluation",
    "evaluation/comparison.py": "evaluation reports/test_findings.py",
    "evaluation/rankings.py": "evaluation",
    "core/candidates.py": "core/test_candidates.py core/test_ranking.py core/search",
    "core/search/joining.py": "core/search",
    "core/filters.py": "core/test_filters.py core/test_table_filters.py",
    "core/index/build.py": "core/index retrievers/link_graph/test_updates.py",
    "retrievers/bm25/scoring.py": "retrievers/bm25",
    "retrievers/bm25/postings.py": "retrievers/bm25",
    "retrievers/link_graph/walk.py": "retrievers/link_graph",
    "judging/sequences.py": "judging/test_decisions.py judging/test_report.py judging/test_project.py",
    "systems/evidence/verdict/deciding.py": "systems/evidence/claims systems/evidence/citations/test_auditor.py",
}
"""A module of the package, and the tests of what it does."""

_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
_SLOWER = 4
"""A mutant is killed after this many times the seconds that the tests take without it, and a minute."""


class Mutant(NamedTuple):
    """A module with one thing in it changed."""

    module: str
    line: int
    what: str
    text: str


def mutants_of(module: str) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    text = (_HERE / "nlp_retrieval" / module).read_text("utf-8")
    tree = ast.parse(text)
    left_out: set[int] = set()
    for node in ast.walk(tree):  # texts, types and what errors say decide nothing
        unseen = isinstance(node, ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom)
        parts = [node] if unseen else [getattr(node, name, None) for name in ("annotation", "returns")]
        parts += getattr(node, "decorator_list", [])
        left_out |= {id(inner) for part in parts if part is not None for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) not in left_out and hasattr(node, "lineno"):
            for changed in _changed(node):
                place = ast.get_source_segment(text, node) or ""
                yield Mutant(module, node.lineno, f"{place} -> {changed}"[:100], _replaced(text, node, changed))


def _changed(node: ast.AST) -> Iterator[str]:
    """Yield what may stand in place of a part of the code."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield ast.unparse(ast.Compare(node.left, [_COMPARED[type(node.ops[0])](), *node.ops[1:]], node.comparators))
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        yield f"({ast.unparse(ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right))})"
    elif isinstance(node, ast.BoolOp):
        yield f"({ast.unparse(ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield repr(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.AugAssign | ast.Expr) and not isinstance(getattr(node, "value", None), ast.Constant | ast.Yield):
        yield "pass"


def _replaced(text: str, node: ast.AST, changed: str) -> str:
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
    before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]  # type: ignore[attr-defined]
    return b"".join([*lines[:first], before + changed.encode() + after, *lines[last + 1 :]]).decode()


def drawn(count: int, seed: int) -> list[Mutant]:
    """Return so many mutants, as many of each module as can be."""
    draw = random.Random(seed)
    piles = {module: sorted(mutants_of(module)) for module in TESTS}
    for pile in piles.values():
        draw.shuffle(pile)
    turns = [pile[turn] for turn in range(count) for pile in piles.values() if turn < len(pile)]
    return sorted(turns[:count])


def tested(folder: Path, tests: str, seconds: float | None) -> bool:
    """Whether the tests pass in a copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *(f"tests/{one}" for one in tests.split())]
    environment = os.environ | {"PYTHONPATH": str(folder), "CI": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main(count: int = 60, seed: int = 0) -> None:
    """Try the mutants, and print the table."""
    killed: dict[str, list[bool]] = defaultdict(list)
    limits: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=_HERE, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(name, filter="data")
        for mutant in drawn(count, seed):
            path, tests = Path(name) / "nlp_retrieval" / mutant.module, TESTS[mutant.module]
            if tests not in limits:
                begin = time.monotonic()
                if not tested(Path(name), tests, None):
                    raise SystemExit(f"tests of {mutant.module} fail without a mutant: {tests}")
                limits[tests] = 60 + _SLOWER * (time.monotonic() - begin)
            original = path.read_bytes()
            path.write_text(mutant.text, "utf-8")
            survived = tested(Path(name), tests, limits[tests])
            path.write_bytes(original)
            killed[mutant.module].append(not survived)
            print(f"{'survived' if survived else 'killed':8} {mutant.module}:{mutant.line}: {mutant.what!r}", flush=True)
    rows = {module: [str(len(found)), str(sum(found))] for module, found in killed.items()}
    rows["all"] = [str(sum(map(len, killed.values()))), str(sum(map(sum, killed.values())))]
    print(table(["module", "mutants", "killed"], rows))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
