"""A pytest plug-in: ``def test_search(retrieval_gate): retrieval_gate(searcher, "gate.yaml")``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from nlp_retrieval.gate.checking import GateReport


_RENEWED = pytest.StashKey[dict[Path, str]]()
"""The test that renewed each baseline in this run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options with which tests renew the baselines of their gates."""
    group = parser.getgroup("nlp-retrieval")
    group.addoption("--update-gate", metavar="REASON", default="", help="Renew baselines of retrieval gates, for this reason.")
    group.addoption("--accept-losses", action="store_true", help="With --update-gate: although a measure fell.")


@pytest.fixture
def retrieval_gate(request: pytest.FixtureRequest) -> Callable[..., GateReport]:
    """Return a function that fails the test if a searcher does not pass a gate."""
    reason: str = request.config.getoption("--update-gate")
    renewed = request.config.stash.setdefault(_RENEWED, {})

    def check(searcher: Any, settings: Any) -> GateReport:
        """Check a searcher, with its index opened, by a gate: settings, or the path of a YAML file."""
        from nlp_retrieval.gate.checking import Gate
        from nlp_retrieval.gate.settings import read_gate
        from nlp_retrieval.gate.writing import lines_of
        from nlp_retrieval.text.printing import not_a_command

        gate = Gate(read_gate(settings) if isinstance(settings, str | Path) else settings, searcher)
        if reason:
            other = renewed.setdefault(gate.settings.baseline.resolve(), request.node.nodeid)
            if other != request.node.nodeid:
                pytest.fail(
                    f"{gate.settings.baseline} was renewed by {other}; give each test a baseline of its own", pytrace=False
                )
            gate.update(reason, accept_losses=request.config.getoption("--accept-losses"))
        report = gate.check()
        if not report.passes:
            pytest.fail("\n".join(map(not_a_command, lines_of(report))), pytrace=False)
        return report

    return check
