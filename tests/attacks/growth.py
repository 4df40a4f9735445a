"""Measuring whether a step over a text works longer than in proportion to its length, for library and systems."""

from __future__ import annotations

import json
import signal

from .planting import in_child

LENGTH = 6_000
MOST = 8
"""A linear step takes 4 times as long for 4 times the text, a quadratic one 16 times: both are far from this, also when other
work on the machine doubles one of the times."""
LEAST_SECONDS = 0.08
"""Shorter times say nothing about growth; the quickest quadratic step takes three times as long for the texts here."""
UNENDING = 900
"""Seconds of processor time after which the kernel ends a module; only there for steps that are exponential."""

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

_OTHERS = """
TEXTS = tuple(text[:N] for text in TEXTS + (
    "()" * N, "(NDC)" * N, "a b c (ABC) " * N, "(" + "A" * N, "()" + " " * N + "x", "://" + ":" * N, "://a:" * N, "?" * N,
    "Bearer " * N, "sk-" * N, "?" + "key" * N, "?" + "-" * N, "eyJaaaaaaaa." * N, "Authorization: Basic " * N, "&;?=" * N,
    "the A, " * N, "A's " * N, "A of " * N, "of the " * N, "@" * (N // 2) + ":" * N, "a:" + "@" * N, "?" + "pass" * N,
    "&#" + "1" * N, "&" + "a" * N, "&#x" + "f" * N, "1 " * N, "1." * N, "1-" * N, "1:" * N, "1e" + "9" * N, "twenty-" * N,
    "10^" + "9" * N, "1/2 " * N, "$(" * N, "1 below " * N, "1% " * N, "1 t of " * N, "1.1." * N, "2019-03-12" * N,
    "March 1-" * N, "12 March 2019, " * N, "Mt CO2 " * N, '"' * N, '"' + chr(92) * N, '"' + (chr(92) + "ud800") * N,
    '["[' * N, '{"a":' * N,
    "[" + "1," * N, "[" + " " * N, "0x" + "_" * N, "&a " * N, "! " * N, "<a-" * N, "<!--" * N, "<![CDATA[" * N, "<?" * N,
    "<!A[]" * N, "<b>" * N, "</num>" * N, "<p>" * (N // 8) + "</p>" * N, "!?" * N, " that" * N, ", " * N, "<think>" * N,
    "<think " + "a" * N, "</think>" * N, "[THINK]" * N, "<|channel|>final " * N, '{"a": "<think>' * N, "- " * N,
    "here is my thought process:" + " " * N, "a" + " " * N, "search query: " * N, "```" + "a" * N, (" " * 500 + chr(10)) * N,
    "[[ ## " * N, "[[ ## a ## " * N, "1 sentence " * N, "the " * N, ("a" + chr(0x2013)) * N, "." + ")" * N, "a&" * N, "a's" * N,
    chr(0x201c) + "a" * N, "a" + chr(0x301) * N, ("a" + chr(0x301)) * N, chr(0x5b0) * N, chr(0xac00) * N, chr(0x6c17) * N,
    chr(0xe19) + chr(0xe49) * N, chr(0x3099) * N, "a" + chr(0xad) * N, chr(0x663) * N, "%4" * N, "a/" * N, "con." * N, "|" * N,
    "docid:" + "a" * N, "docid: a " * N, chr(0x3010) * N, chr(92) * N, "\\0" * N, "> +/-" * N))
"""


def in_prose(body: str, imports: str) -> str:
    """Return code that runs a step over each of the texts that are hard on readers of prose."""
    return f"{imports}\n{_PROSE}\nfor text in TEXTS:\n    {body}\n"


def in_all(body: str, imports: str) -> str:
    """Return code that runs a step, which may refuse some of them, over every text that has been hard on any reader."""
    needed = "from contextlib import suppress\nfrom nlp_retrieval.errors import RetrievalError"
    guarded = f"    with suppress(RetrievalError, ValueError):\n        {body}\n"
    return f"{imports}\n{needed}\n{_PROSE}{_OTHERS}\nfor text in TEXTS:\n{guarded}"


def check_growth(attacked: dict[str, str], effort: int) -> None:
    """Measure all modules in one process, because importing takes longer than what is tested."""
    grown, ending = measure(attacked, LENGTH * (4 if effort > 1 else 1), UNENDING * effort)
    for module in attacked:
        assert grown.get(module, "not reached") == [], f"{module}: {grown.get(module)} {ending}"
