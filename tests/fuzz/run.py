"""Fuzzing a target by coverage with atheris: ``python tests/fuzz/run.py TARGET --seconds 600``.

Those of the systems are in ``--package systems.fuzz``.

The fuzzer runs in a process of its own, at bounded memory, on a corpus that begins with the target's seeds and the findings of
before. An error that escapes is noted once for each place that it comes from, and fuzzing goes on; a hang, a crash of the
interpreter or memory without bound ends it. Inputs of findings are left in ``--keep``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).parent.parent

_RSS_MB = 2048
_HANG_SECONDS = 10
_LONGEST = 1 << 12
_STARTING = 60
"""Seconds that imports and seeds may take."""


@dataclass
class Outcome:
    """What came of fuzzing a target.

    Args:
        target: its name.
        seconds: that it took, the start included.
        executions: inputs that were tried.
        coverage: branches that were reached.
        findings: the files of inputs that went wrong, and what happened.
        complete: whether the fuzzer ran to its end.
    """

    target: str
    seconds: float
    executions: int = 0
    coverage: int = 0
    findings: dict[str, str] = field(default_factory=dict)
    complete: bool = False

    def __str__(self) -> str:
        head = f"{self.target}: {self.executions:,} executions, {self.coverage:,} branches, {self.seconds:.0f} s"
        state = "" if self.complete else ", ended early"
        return "\n".join([f"{head}, {len(self.findings)} findings{state}", *(f"  {n}: {w}" for n, w in self.findings.items())])


def cases_of(package: str) -> Path:
    """Return the folder of inputs that a parser once went wrong on."""
    return TESTS.joinpath(*package.split("."), "cases")


def fuzz(target: str, seconds: int, keep: Path, package: str) -> Outcome:
    """Fuzz a target.

    Args:
        target: its name.
        seconds: how long.
        keep: folder for the inputs of findings and the fuzzer's log; made where it is missing.
        package: has the target and its seeds.
    """
    keep.mkdir(parents=True, exist_ok=True)
    log = keep / f"{target}.log"
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzzing-", dir=_in_memory()) as scratch, log.open("wb") as told:
        command = [sys.executable, __file__, target, "--inside", "--seconds", str(seconds), "--keep", str(keep)]
        command += ["--package", package]
        environment = os.environ | {"TMPDIR": scratch, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": scratch}
        limit = seconds + _STARTING + 2 * _HANG_SECONDS
        try:
            code = subprocess.run(command, stdout=told, stderr=told, env=environment, timeout=limit, check=False).returncode
        except subprocess.TimeoutExpired:
            code = -1
    outcome = Outcome(target, time.monotonic() - began, complete=code == 0)
    text = log.read_text("utf-8", "replace")
    if numbers := re.findall(r"^#(\d+)\s", text, re.MULTILINE):
        outcome.executions = int(numbers[-1])
    if total := re.search(r"stat::number_of_executed_units:\s*(\d+)", text):
        outcome.executions = int(total[1])
    outcome.coverage = max(map(int, re.findall(r" cov: (\d+)", text)), default=0)
    for path in sorted(keep.glob(f"{target}-*")):
        said = path.with_suffix(".txt")
        if path.suffix != ".txt":
            outcome.findings[path.name] = said.read_text("utf-8").splitlines()[-1] if said.exists() else "see the log"
    return outcome


def _in_memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _inside(target: str, seconds: int, keep: Path, package: str) -> None:
    """Fuzz in this process; it ends here."""
    sys.path.insert(0, str(TESTS))
    import atheris

    with atheris.instrument_imports(include=["nlp_retrieval", "yaml"]):
        from fuzz.seeds import seeds_of
        from fuzz.targets import feed

        parse = partial(feed, targets=import_module(f"{package}.targets").TARGETS)
        corpus = Path(tempfile.mkdtemp(prefix="corpus-"))
        seeds = seeds_of(target, import_module(f"{package}.seeds").SEEDS)
        seeds += [path.read_bytes() for path in sorted((cases_of(package) / target).glob("*"))]
        for number, seed in enumerate(seeds):
            (corpus / f"seed-{number}").write_bytes(seed)
        seen: set[str] = set()
        for seed in seeds:
            _try(parse, target, seed, seen, keep)  # what is imported late is imported while imports are instrumented

    longest = max(_LONGEST, 2 * max(map(len, seeds)))
    options = [
        f"-max_total_time={seconds}", f"-rss_limit_mb={_RSS_MB}", f"-timeout={_HANG_SECONDS}", f"-max_len={longest}",
        f"-artifact_prefix={keep}/{target}-", "-print_final_stats=1", "-len_control=20",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda data: _try(parse, target, data, seen, keep))
    atheris.Fuzz()


def _try(feed, target: str, data: bytes, seen: set[str], keep: Path) -> None:
    try:
        feed(target, data)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        last = next((frame for frame in reversed(frames) if "nlp_retrieval" in frame.filename), frames[-1])
        place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
        if place in seen:
            return
        seen.add(place)
        name = f"{target}-error-{hashlib.sha256(place.encode()).hexdigest()[:8]}"
        (keep / name).write_bytes(data)
        (keep / f"{name}.txt").write_text(
            "".join(traceback.format_exception(error)) + f"{place}: {error!s:.200} for {data[:200]!r}\n", "utf-8", "replace"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "fuzz-findings")
    parser.add_argument("--package", default="fuzz")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        _inside(asked.target, asked.seconds, asked.keep, asked.package)
        return
    sys.path.insert(0, str(TESTS))
    targets = import_module(f"{asked.package}.targets").TARGETS
    if asked.target not in targets:
        parser.error(f"there is no target {asked.target!r}; there are: {', '.join(targets)}")
    outcome = fuzz(asked.target, asked.seconds, asked.keep, asked.package)
    sys.stdout.write(f"{outcome}\n")
    sys.exit(1 if outcome.findings or not outcome.complete else 0)


if __name__ == "__main__":
    main()
