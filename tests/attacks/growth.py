"""Measuring whether a step over a text works longer than in proportion to its length, for library and systems."""

from __future__ import annotations

import ast
import json
import signal
from pathlib import Path

import nlp_retrieval

from .conftest import Tally
from .planting import in_child

FAMILY = "steps over a text that blow up"
LENGTH = 6_000
MOST = 8
"""A linear step takes 4 times as long for 4 times the text, a quadratic one 16 times: both are far from this, also when other
work on the machine doubles one of the times."""
LEAST_SECONDS = 0.08
"""Shorter times say nothing about growth; the quickest quadratic step takes three times as long for the texts here."""
UNENDING = 900
"""Seconds of processor time after which the kernel ends a module; only there for steps that are exponential."""

ROOM = Path(nlp_retrieval.__file__).parent

MEASURING = """
import ast, json, sys, time

def seconds(tree, length):
    times = []
    def timed(values):
        for value in values:
            place = len(times)
            times.append(0.0)
            began = time.process_time()
            yield value
            times[place] = time.process_time() - began
    marked = ("a" + chr(0x315) * length + chr(0x300) * length, "a" + (chr(0x315) + chr(0x300)) * length)
    space = {"N": length, "MARKED": marked, "_timed": timed}
    began = time.process_time()
    exec(compile(tree, "attack", "exec"), space)
    return [*times, time.process_time() - began]

def time_loops(tree):
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.For):
            if not isinstance(node.iter, (ast.Tuple, ast.Name)):
                continue  # how often it runs may depend on the length
            node.iter = ast.Call(ast.Name("_timed", ast.Load()), [node.iter], [])
        time_loops(node)

def grown(code):
    tree = ast.parse(code)
    time_loops(tree)
    ast.fix_missing_locations(tree)
    seconds(tree, 500)  # imports, and builds what is built once
    best = None
    for _ in range(3):  # what grew too much once may have been disturbed: the shortest times count
        measured = [seconds(tree, length) for length in (LENGTH, 4 * LENGTH)]
        best = measured if best is None else [list(map(min, *pair)) for pair in zip(best, measured)]
        slow = [(n, short, long) for n, (short, long) in enumerate(zip(*best)) if long > max(LEAST, MOST * short)]
        if not slow:
            return []
    longest = seconds(tree, 8 * LENGTH)  # a step that is not linear grows too much again
    return [(n, short, long, longest[n]) for n, short, long in slow if longest[n] > MOST**0.5 * long]

for name, code in json.loads(sys.stdin.read()).items():
    print(json.dumps([name, None]), flush=True)
    print(json.dumps([name, grown(code)]), flush=True)
"""


def measure(attacks: dict[str, str], length: int, seconds: int) -> tuple[dict[str, list[list[float]]], str]:
    """Return per module the texts that grew too much: number, seconds, those for 4 and 8 times the text; and how it ended."""
    code = f"LENGTH, LEAST, MOST = {length}, {LEAST_SECONDS}, {MOST}\n{MEASURING}"
    done = in_child(code, seconds=seconds, given=json.dumps(attacks))
    grown = dict(map(json.loads, done.stdout.splitlines()))
    return grown, "too long" if done.returncode == -signal.SIGXCPU else done.stderr[-2000:]


_PROSE = """
TEXTS = ("." * N, ". " * N, "A. " * N, '."' * N, "e.g. " * N, " " * N, "a" * N, "[" * N, "[1" * N, "[1]" * N, "[1, " * N,
         "(" * N,
         "[^a" * N, "1" * N, "1," * N, "1 million " * N, "A" * N, "Ab " * N, "Ab. " * N, "not " * N, "n't" * N, chr(10) * N,
         (chr(10) + " ") * N, "-" * N, "http://" * N, "https://a.b/" * N, "_" * N, "*" * N, "`" * N, "<" * N, "&" * N,
         chr(0x3002) * N, chr(0x200b) * N, chr(0x202e) * N, "[a](" * N, "![" * N, "| " * N, "doi:10.1/" * N)
"""


def in_prose(body: str, imports: str) -> str:
    """Return code that runs a step over each of the texts that are hard on readers of prose."""
    return f"{imports}\n{_PROSE}\nfor text in TEXTS:\n    {body}\n"


def modules_with_patterns(folder: Path) -> set[str]:
    """Return the modules of a folder where ``re`` is called with a pattern, relative to the package."""
    found = set()
    for path in sorted(path for path in folder.rglob("*.py") if "testing" not in path.parts):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re":
                found.add(path.relative_to(ROOM).as_posix())
    return found


def check_growth(attacked: dict[str, str], effort: int, tally: Tally) -> None:
    """Measure all modules in one process, because importing takes longer than what is tested."""
    grown, ending = measure(attacked, LENGTH * (4 if effort > 1 else 1), UNENDING * effort)
    for module in attacked:
        with tally(FAMILY):
            assert grown.get(module, "not reached") == [], f"{module}: {grown.get(module)} {ending}"
