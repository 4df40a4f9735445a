"""Online, a view of the runs is saved once where wandb-workspaces is installed; whatever goes wrong there is a note."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nlp_retrieval.reports.trackers import Ledger, _dashboard
from nlp_retrieval.reports.view import view_of
from reports.report_data import usual_report

MAIN = "recall@21"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path, {"a": 1}, "hover 2026-11-27")


def saved(ledger: Ledger) -> str:
    return _dashboard(ledger, "tests", "team", view_of(usual_report()))


def test_without_the_package_there_is_a_note_that_names_it(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb_workspaces", None)
    assert saved(ledger) == "  no dashboard was saved: it needs wandb-workspaces (pip install wandb-workspaces)"
    assert ledger.dashboard == ""


def test_a_package_that_fails_is_a_note(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wandb_workspaces").mkdir()
    (tmp_path / "wandb_workspaces" / "__init__.py").write_text("raise RuntimeError('no such team\\nmore')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "wandb_workspaces"]:
        monkeypatch.delitem(sys.modules, name)
    assert saved(ledger) == "  no dashboard was saved: no such team"
    assert ledger.dashboard == ""


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")  # of the package, when it is imported
def test_the_view_has_the_main_measure_latency_and_the_table_of_the_group_and_is_saved_once(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wandb_workspaces import workspaces

    models = []

    def save(workspace):  # type: ignore[no-untyped-def]
        models.append(workspace._to_model().model_dump(by_alias=True, exclude_none=True))
        return workspace

    monkeypatch.setattr(workspaces.Workspace, "save", save)
    monkeypatch.setattr(workspaces.Workspace, "url", property(lambda _: "https://wandb.example/team/tests?nw=1"))
    assert saved(ledger) == "  dashboard: https://wandb.example/team/tests?nw=1"
    assert saved(Ledger(tmp_path, {"a": 1}, "another")) == "  dashboard: https://wandb.example/team/tests?nw=1"
    (model,) = models
    assert (model["entity"], model["project"], model["displayName"]) == ("team", "tests", "hover 2026-11-27")
    section = model["spec"]["section"]
    first, costs = section["panelBankConfig"]["sections"]
    intervals, bars, scatter, table = first["panels"]
    assert intervals["config"]["mediaKeys"] == ["main measure"]
    assert bars["config"]["metrics"] == [MAIN]
    assert (scatter["config"]["xAxis"], scatter["config"]["yAxis"]) == ("summary:cost/latency_ms", f"summary:{MAIN}")
    assert table["config"]["panel2Config"]["exp"]["fromOp"]["inputs"]["key"]["val"] == "comparison"
    assert [panel["config"]["metrics"] for panel in costs["panels"]] == [["cost/latency_ms"], ["cost/index_bytes"]]
    (runs,) = section["runSets"]
    assert [(one["key"]["name"], one["value"]) for one in runs["filters"]["filters"]] == [("group", "hover 2026-11-27")]
    assert runs["sort"]["keys"][0] == {"key": {"section": "summary", "name": MAIN}, "ascending": False}
