"""There is no Docker here, so no image is built; what can be said of it and of the compose file without one is said here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from service.running import make_index, running

from .conftest import ROOT

TEXT = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text("utf-8"))
LINES = [line.split(None, 1) for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]
COMPOSE: Any = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SCRAPING: Any = yaml.safe_load((ROOT / "docker" / "prometheus.yml").read_text("utf-8"))
SERVICE = COMPOSE["services"]["service"]


def stages() -> dict[str, list[tuple[str, str]]]:
    """By name: the instructions of each stage, the first of which is what it begins from."""
    found: dict[str, list[tuple[str, str]]] = {}
    for instruction, rest in LINES:
        if instruction == "FROM":
            origin, name = rest.split(" AS ")
            found[name] = [("FROM", origin)]
        else:
            found[name].append((instruction, rest))
    return found


RUNTIME = stages()["runtime"]
ENVIRONMENT = dict(word.split("=", 1) for instruction, rest in RUNTIME if instruction == "ENV" for word in rest.split())


def of_runtime(instruction: str) -> list[str]:
    return [rest for name, rest in RUNTIME if name == instruction]


def test_what_is_run_is_not_root_and_holds_no_sources_and_no_cache() -> None:
    assert list(stages())[-1] == "runtime"
    assert of_runtime("USER") == ["10001"]
    assert of_runtime("COPY") == ["--from=build /opt/venv /opt/venv"]
    assert "PIP_NO_CACHE_DIR=1" in [word for _, rest in stages()["build"] for word in rest.split()]


def test_what_compose_names_is_there_and_nothing_is_open_to_other_machines() -> None:
    services = COMPOSE["services"]
    mounted = [mount.partition(":")[0] for one in services.values() for mount in one.get("volumes", [])]
    assert {name for name in mounted if re.fullmatch(r"\w+", name)} == set(COMPOSE["volumes"])
    assert {secret for one in services.values() for secret in one.get("secrets", [])} == set(COMPOSE["secrets"])
    assert all((ROOT / name).exists() for name in mounted if name.startswith("./docker"))
    assert all(port.startswith("127.0.0.1:") for one in services.values() for port in one.get("ports", []))
    assert set(SERVICE["depends_on"]) <= set(services)
    assert SERVICE["read_only"]
    (scraped,) = SCRAPING["scrape_configs"]
    assert scraped["static_configs"] == [{"targets": [f"service:{SERVICE['environment']['NLP_RETRIEVAL_PORT']}"]}]
    assert scraped["authorization"]["credentials_file"] == SERVICE["environment"]["NLP_RETRIEVAL_TOKEN_FILE"]


def test_the_entry_serves_a_mounted_index_and_the_health_check_tells_whether_it_does(tmp_path: Path) -> None:
    make_index(tmp_path / "index")
    (health,) = [json.loads(rest.partition("CMD ")[2]) for rest in of_runtime("HEALTHCHECK")]
    (words,) = [json.loads(rest) for rest in of_runtime("CMD")]
    command = [sys.executable, *health[1:]]
    assert (health[0], words) == ("python", ["serve", "/data/index"])
    settings = {name: value for name, value in ENVIRONMENT.items() if name.startswith("NLP_RETRIEVAL_")}
    with running([tmp_path / "index"], NLP_RETRIEVAL_TOKEN="a-token-of-the-tests-0123", **settings) as service:
        assert all(line.startswith("{") for line in service.said)
        given = os.environ | settings | {"NLP_RETRIEVAL_PORT": str(service.port)}
        assert subprocess.run(command, env=given, check=False).returncode == 0
    assert subprocess.run(command, env=given, check=False).returncode == 1
