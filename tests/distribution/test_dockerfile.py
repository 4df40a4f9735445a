"""The Dockerfile cannot be built where there is no Docker; what can be said of it without one is said here."""

from __future__ import annotations

import configparser
import re
import subprocess
import sysconfig
from pathlib import Path

from .conftest import ROOT

TEXT = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text("utf-8"))
LINES = [line.split(None, 1) for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]
PAGE = (ROOT / "docs" / "SERVICE.md").read_text("utf-8").partition("## In a container")[2]
TARGETS = ("base", "dense", "service", "all")


def stages() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """By name: what each stage begins from, and its instructions."""
    found: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    name = ""
    for instruction, rest in LINES:
        if instruction == "FROM":
            origin, name = rest.split(" AS ")
            found[name] = (origin, [])
        else:
            found[name][1].append((instruction, rest))
    return found


def lineage(name: str) -> list[tuple[str, str]]:
    """The instructions of a stage and of those it begins from, first to last."""
    known = stages()
    origin, own = known[name]
    return (lineage(origin) if origin in known else []) + own


def test_the_linter_finds_nothing() -> None:
    hadolint = Path(sysconfig.get_path("scripts")) / "hadolint"
    done = subprocess.run([hadolint, "--no-color", str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_there_is_a_target_for_each_set_of_extras_and_base_is_the_default() -> None:
    known = list(stages())
    assert set(TARGETS) <= set(known)
    assert known[-1] == "base"
    assert re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE) == list(TARGETS)


def test_what_is_run_is_not_root_and_holds_no_sources_and_no_cache() -> None:
    for target in TARGETS:
        steps = lineage(target)
        assert [rest for instruction, rest in steps if instruction == "USER"] == ["10001"]
        assert [rest for instruction, rest in steps if instruction == "COPY"] == [f"--from=build-{target} /opt/venv /opt/venv"]
        assert "PIP_NO_CACHE_DIR=1" in [word for _, rest in lineage(f"build-{target}") for word in rest.split()]


def test_every_image_from_elsewhere_has_an_exact_tag() -> None:
    known = stages()
    outer = {origin for origin, _ in known.values() if origin not in known}
    assert outer
    assert [origin for origin in outer if not re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", origin)] == []


def test_the_extras_are_those_of_the_package() -> None:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg")
    installed = re.findall(r"RUN pip install --constraint constraints.txt '\.\[([\w,-]+)\]'", TEXT)
    named = {extra for extras in installed for extra in extras.split(",")}
    assert named
    assert named <= set(settings["options.extras_require"])


def test_what_is_copied_is_there_and_is_let_through() -> None:
    copied = [name for line in LINES if line[0] == "COPY" and "--from" not in line[1] for name in line[1].split()[:-1]]
    let_through = [line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    assert sorted(copied) == sorted(let_through)
    assert [name for name in copied if not (ROOT / name).exists()] == []
