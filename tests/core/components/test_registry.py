"""Finding and building components by name, ours and those of other packages (real entry points on the path)."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlp_retrieval.core.components.registry import build, component_class, names, registered
from nlp_retrieval.errors import ConfigurationError

ENGINES = "core.engines"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a package that registers components, for one test."""

    def install(package: str, **groups: dict[str, str]) -> None:
        info = tmp_path / package / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = []
        for kind, entries in groups.items():
            lines += [f"[nlp_retrieval.{kind}]", *(f"{name} = {value}" for name, value in entries.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(str(tmp_path / package))
        registered.cache_clear()

    yield install
    registered.cache_clear()


@pytest.fixture
def plugin(install) -> None:
    install(
        "toyplugin",
        retrievers={"terms": f"{ENGINES}:TermCount", "share": f"{ENGINES}:TermShare"},
        rerankers={"brief": f"{ENGINES}:Brief"},
        processors={"split": f"{ENGINES}:SplitAt"},
        loaders={"list": f"{ENGINES}:ListLoader"},
    )


def test_a_component_of_another_package_is_found_and_built(plugin):
    made = build("retrievers", {"name": "terms", "min_length": 2})
    assert made == component_class("retrievers", "terms")(min_length=2)
    assert "terms" in names("retrievers")


def test_an_unknown_name_lists_the_nearest():
    with pytest.raises(ConfigurationError, match=r"no fusion called 'rff'; did you mean 'rrf'\?.*combsum"):
        build("fusions", "rff")


def test_wrong_values_deep_inside_are_named_with_their_place(plugin):
    settings = {"name": "searcher", "retrievers": [{"name": "terms"}, {"name": "terms", "min_length": 0}]}
    with pytest.raises(ConfigurationError, match=r"searchers\.a\.retrievers\[1\].*min_length=0"):
        build("searchers", settings, "searchers.a")
    settings["retrievers"][1] = {"name": "termz"}
    with pytest.raises(ConfigurationError, match=r"searchers\.a\.retrievers\[1\].*'termz'; did you mean 'terms'"):
        build("searchers", settings, "searchers.a")


def test_two_packages_that_register_one_name_are_an_error_that_names_both(install):
    install("one", retrievers={"clash": f"{ENGINES}:TermCount"})
    install("two", retrievers={"clash": f"{ENGINES}:TermShare"})
    with pytest.raises(ConfigurationError, match=r"two packages register 'clash'.*engines:Term.*engines:Term"):
        build("retrievers", "clash")


def test_an_entry_point_that_is_no_component_is_refused_and_not_called(install):
    install("evil", retrievers={"evil": "os:system"})
    with pytest.raises(ConfigurationError, match="is not a component"):
        build("retrievers", "evil")
