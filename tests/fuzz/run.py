"""Fuzzing a target by coverage with atheris, in a process of its own.

It begins with the target's seeds and the findings of before. An error that escapes is noted once for each place that it comes
from, and fuzzing goes on; a hang, a crash of the interpreter or memory without bound ends it. Inputs of findings are
left in a folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent.parent

_RSS_MB = 2048
_HANG_SECONDS = 10
_LONGEST = 1 << 12
_STARTING = 60
"""Seconds that imports and seeds may take."""


class Outcome(NamedTuple):
    """What came of fuzzing a target: inputs tried, branches reached, what went wrong, and whether it ran to its end."""

    executions: int
    coverage: int
    findings: list[str]
    complete: bool


def cases_of(package: str) -> Path:
    """Return the folder of inputs that a parser once went wrong on."""
    return TESTS.joinpath(*package.split("."), "cases")


def fuzz(target: str, seconds: int, keep: Path, package: str) -> Outcome:
    """Fuzz a target of a package; inputs of findings and the fuzzer's log are left in a folder."""
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzzing-", dir=in_memory) as scratch, (keep / "log").open("wb") as told:
        command = [sys.executable, __file__, target, str(seconds), str(keep), package]
        environment = os.environ | {"TMPDIR": scratch, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": scratch}
        limit = seconds + _STARTING + 2 * _HANG_SECONDS
        try:
            code = subprocess.run(command, stdout=told, stderr=told, env=environment, timeout=limit, check=False).returncode
        except subprocess.TimeoutExpired:
            code = -1
    text = (keep / "log").read_text("utf-8", "replace")
    executions = re.findall(r"^#(\d+)\s|stat::number_of_executed_units:\s*(\d+)", text, re.MULTILINE)
    coverage = max(map(int, re.findall(r" cov: (\d+)", text)), default=0)
    findings = [path.read_text("utf-8") for path in keep.glob("*.txt")] + [path.name for path in keep.glob("crash-*")]
    return Outcome(int("".join(executions[-1])) if executions else 0, coverage, findings, code == 0)


def _fuzz_here(target: str, seconds: int, keep: Path, package: str) -> None:
    """Fuzz in this process; it ends here."""
    sys.path.insert(0, str(TESTS))
    import atheris

    with atheris.instrument_imports(include=["nlp_retrieval", "yaml"]):
        from fuzz.seeds import seeds_of
        from fuzz.targets import feed

        parse = partial(feed, target, targets=import_module(f"{package}.targets").TARGETS)
        seeds = seeds_of(target, import_module(f"{package}.seeds").SEEDS)
        seeds += [path.read_bytes() for path in sorted((cases_of(package) / target).glob("*"))]
        seen: set[str] = set()
        for seed in seeds:
            _try(parse, seed, seen, keep)  # what is imported late is imported while imports are instrumented
    corpus = Path(tempfile.mkdtemp(prefix="corpus-"))
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [
        f"-max_total_time={seconds}", f"-rss_limit_mb={_RSS_MB}", f"-timeout={_HANG_SECONDS}", "-print_final_stats=1",
        f"-max_len={max(_LONGEST, 2 * max(map(len, seeds)))}", f"-artifact_prefix={keep}/crash-", "-len_control=20",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda data: _try(parse, data, seen, keep))
    atheris.Fuzz()


def _try(parse: Callable[[bytes], object], data: bytes, seen: set[str], keep: Path) -> None:
    try:
        parse(data)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        last = next((frame for frame in reversed(frames) if "nlp_retrieval" in frame.filename), frames[-1])
        place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
        if place not in seen:
            seen.add(place)
            name = hashlib.sha256(place.encode()).hexdigest()[:8]
            (keep / f"error-{name}").write_bytes(data)
            (keep / f"error-{name}.txt").write_text(f"{place}: {error!s:.200} for {data[:200]!r}\n", "utf-8", "replace")


if __name__ == "__main__":
    _fuzz_here(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
