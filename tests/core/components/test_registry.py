"""Finding and building components by name, ours and those of other packages (real entry points on the path)."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from pathlib import Path

import pytest

from core.engines import NotesLoader
from nlp_retrieval.core.components.component import parameters_of
from nlp_retrieval.core.components.registry import (
    build,
    build_as,
    component_class,
    describe_parameters,
    kinds,
    names,
    registered,
)
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.files.yaml_text import parse_yaml
from nlp_retrieval.core.search.joining import RawScore, ReciprocalRankFusion, WeightedSum
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.loaders.tables import JsonlLoader

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
        loaders={"list": f"{ENGINES}:ListLoader", "notes": f"{ENGINES}:NotesLoader"},
    )


def test_a_component_of_another_package_is_found_and_built(plugin):
    made = build("retrievers", {"name": "terms", "min_length": 2})
    assert made == component_class("retrievers", "terms")(min_length=2)
    assert "terms" in names("retrievers")


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "searcher", "retrievers": [{"name": "terms"}]},
        {
            "name": "searcher",
            "retrievers": [{"name": "terms", "min_length": 2}, {"name": "share"}],
            "processor": {"name": "split", "mark": "/"},
            "fusion": {"name": "weighted_sum", "weights": [1.0, 2.0]},
            "reranker": {"name": "brief", "blend": "rank"},
            "scope": "per_subquery",
            "depth": 25,
            "quota": 7,
        },
        {"name": "searcher", "retrievers": {"a": {"name": "terms"}, "b": {"name": "terms", "boost": 2.0}}},
        {"name": "searcher", "retrievers": [{"name": "terms"}], "fusion": {"name": "raw"}},
    ],
)
def test_a_config_builds_an_equal_component(plugin, settings):
    made = build("searchers", settings)
    assert build("searchers", made.config) == made
    assert build("searchers", made.config).fingerprint == made.fingerprint
    for key, value in settings.items():
        if not isinstance(value, (list, dict)):
            assert made.config[key] == value


def test_a_path_is_text_in_a_file_and_a_path_in_the_constructor(plugin, tmp_path):
    notes = [tmp_path / f"{number}.txt" for number in range(4)]
    for number, file in enumerate(notes):
        file.write_text(f"note {number}\n")
    settings = f"{{name: notes, path: {notes[0]}, others: [{notes[1]}], named: {{a: {notes[2]}}}, extra: {notes[3]}}}"
    loader = build_as(NotesLoader, "loaders", parse_yaml(settings, "notes.yaml"))
    assert [item.content for item in loader.load()] == ["note 0", "note 1", "note 2", "note 3"]
    assert loader == NotesLoader(notes[0], [notes[1]], {"a": notes[2]}, notes[3])
    assert loader.config["path"] == str(notes[0])
    for same in (
        build("loaders", json.loads(json.dumps(loader.config))),
        copy.deepcopy(loader),
        pickle.loads(pickle.dumps(loader)),
    ):
        assert same == loader
        assert same.load() == loader.load()
    assert build_as(NotesLoader, "loaders", {"name": "notes", "path": "x", "encoding": "ascii"}).encoding == "ascii"


def test_text_in_place_of_a_path_is_told_how_to_write_it(plugin):
    with pytest.raises(ConfigurationError, match=r"NotesLoader: path='a.txt': Input should be a Path"):
        NotesLoader("a.txt")


def test_a_built_searcher_is_what_python_would_have_built(plugin):
    terms = component_class("retrievers", "terms")
    built = build("searchers", {"name": "searcher", "retrievers": ["terms"], "fusion": "rrf", "depth": 3})
    assert built == Searcher([terms()], fusion=ReciprocalRankFusion(), depth=3)


@pytest.mark.parametrize("fusion", ["raw", "rrf", "weighted_sum", "combsum", "combmnz"])
def test_every_fusion_of_ours_is_built_again_from_its_config(fusion):
    made = build("fusions", fusion)
    assert made.config["name"] == fusion
    assert build("fusions", made.config) == made
    assert build("fusions", made.config).config == made.config


@pytest.mark.parametrize("kind", kinds())
def test_every_registered_name_is_the_name_of_its_class(kind):
    for name in names(kind):
        cls = component_class(kind, name)
        assert (cls.name, cls.kind) == (name, kind)


@pytest.mark.parametrize("kind", kinds())
def test_every_parameter_of_ours_is_described_in_its_class_and_has_a_type(kind):
    for name in names(kind):
        cls = component_class(kind, name)
        described = {key: description for key, _, description, _ in describe_parameters(cls)}
        for key, parameter in parameters_of(cls).items():
            assert parameter.annotation is not parameter.empty, f"{name}.{key} has no type"
            assert described[key], f"{name}.{key} has no description"
        assert cls.search_only <= set(parameters_of(cls)), f"{name} has a search_only parameter that it does not take"


@pytest.mark.parametrize("form", [{"name": "org/model"}, {"model": "org/model"}, {"name": "colbert", "model": "org/model"}])
@pytest.mark.parametrize(("kind", "name"), [("retrievers", "colbert"), ("rerankers", "late_interaction")])
def test_the_name_of_a_model_makes_a_token_encoder_where_one_is_expected(kind, name, form):
    made = build(kind, {"name": name, "encoder": form | {"projection": 64}})
    assert made.encoder == component_class("encoders", "colbert")("org/model", projection=64)
    assert build(kind, made.config) == made


@pytest.mark.parametrize("form", [{"name": "org/model"}, {"model": "org/model"}])
def test_the_name_of_a_model_makes_an_encoder_of_texts_everywhere_else(form):
    expected = component_class("encoders", "sentence-transformers")("org/model", batch_size=8)
    assert build("retrievers", {"name": "faiss", "encoder": form | {"batch_size": 8}}).encoder == expected
    assert build("encoders", form | {"batch_size": 8}) == expected


def test_an_encoder_of_texts_is_refused_where_token_vectors_are_expected():
    settings = {"name": "colbert", "encoder": {"name": "sentence-transformers", "model": "org/model"}}
    with pytest.raises(ConfigurationError, match=r"searchers\.a: ColbertRetriever: encoder="):
        build("retrievers", settings, "searchers.a")


def test_parameters_of_the_other_encoder_are_refused_with_the_place():
    settings = {"name": "colbert", "encoder": {"name": "org/model", "normalize": True}}
    with pytest.raises(ConfigurationError, match=r"searchers\.a\.encoder: colbert has no parameter 'normalize'"):
        build("retrievers", settings, "searchers.a")


def test_a_component_without_parameters_has_none():
    assert dict(parameters_of(RawScore)) == {}


def test_an_unknown_name_lists_the_nearest():
    with pytest.raises(ConfigurationError, match=r"no fusion called 'rff'; did you mean 'rrf'\?.*combsum"):
        build("fusions", "rff")


def test_an_unknown_field_lists_the_nearest():
    with pytest.raises(
        ConfigurationError, match=r"searchers\.hybrid: weighted_sum has no parameter 'weigths'; did you mean 'weights'"
    ):
        build("fusions", {"name": "weighted_sum", "weigths": [1]}, "searchers.hybrid")


def test_an_unknown_field_of_a_component_without_parameters_is_refused():
    for key in ("k", "args", "kwargs"):
        with pytest.raises(ConfigurationError, match=f"no parameter '{key}'"):
            build("fusions", {"name": "raw", key: 1})


def test_an_unknown_kind_lists_the_nearest():
    with pytest.raises(ConfigurationError, match="did you mean 'retrievers'"):
        names("retriever")


def test_wrong_values_deep_inside_are_named_with_their_place(plugin):
    settings = {"name": "searcher", "retrievers": [{"name": "terms"}, {"name": "terms", "min_length": 0}]}
    with pytest.raises(ConfigurationError, match=r"searchers\.a\.retrievers\[1\].*min_length=0"):
        build("searchers", settings, "searchers.a")
    settings["retrievers"][1] = {"name": "termz"}
    with pytest.raises(ConfigurationError, match=r"searchers\.a\.retrievers\[1\].*'termz'; did you mean 'terms'"):
        build("searchers", settings, "searchers.a")


@pytest.mark.parametrize("settings", [None, 7, ["terms"]])
def test_settings_without_a_usable_name_are_refused(settings):
    with pytest.raises(ConfigurationError, match="here"):
        build("fusions", settings, "here")


def test_a_missing_parameter_is_named():
    with pytest.raises(ConfigurationError, match="searcher needs 'retrievers'"):
        build("searchers", "searcher")


def test_what_is_no_component_of_the_wanted_class_is_refused(plugin):
    assert isinstance(build_as(BaseLoader, "loaders", {"loader": "list", "texts": ["a"]}), BaseLoader)
    with pytest.raises(ConfigurationError, match="'list' is not a BaseRetriever"):
        build_as(BaseRetriever, "loaders", {"name": "list", "texts": ["a"]}, "corpus")


def test_naming_what_would_fit_imports_nothing_of_other_packages(plugin, install):
    install("absent", loaders={"absent": "a_package_that_is_not_there:Loader"})
    with pytest.raises(ConfigurationError, match=r"'list' is not a JsonlLoader; these are: jsonl$"):
        build_as(JsonlLoader, "loaders", {"name": "list", "texts": ["a"]}, "corpus")


def test_two_packages_that_register_one_name_are_an_error_that_names_both(install):
    install("one", retrievers={"clash": f"{ENGINES}:TermCount"})
    install("two", retrievers={"clash": f"{ENGINES}:TermShare"})
    with pytest.raises(ConfigurationError, match=r"two packages register 'clash'.*engines:Term.*engines:Term"):
        build("retrievers", "clash")


def test_one_package_found_twice_on_the_path_is_no_clash(install):
    install("one", retrievers={"same": f"{ENGINES}:TermCount"})
    install("two", retrievers={"same": f"{ENGINES}:TermCount"})
    assert build("retrievers", "same").name == "terms"


@pytest.mark.parametrize("target", ["os:system", "json:dumps", "builtins:eval"])
def test_an_entry_point_that_is_no_component_is_refused_and_not_called(install, target):
    install("evil", retrievers={"evil": target})
    with pytest.raises(ConfigurationError, match="is not a component"):
        build("retrievers", "evil")


def test_an_import_path_is_no_name():
    for path in (
        "os:system",
        "nlp_retrieval.core.search.joining:RawScore",
        "nlp_retrieval.core.search.joining.RawScore",
    ):
        with pytest.raises(ConfigurationError, match="there is no fusion called"):
            build("fusions", path)


def test_asking_for_names_imports_no_component(install):
    install("lazy", retrievers={"lazy": "a_module_that_is_not_there:Retriever"})
    assert "lazy" in names("retrievers")
    assert "a_module_that_is_not_there" not in sys.modules


def test_a_component_that_is_passed_ready_made_is_kept():
    fusion = WeightedSum([1.0])
    assert build("searchers", {"name": "searcher", "retrievers": ["bm25"], "fusion": fusion}).fusion is fusion
