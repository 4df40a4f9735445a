"""Published files of entities and triples: both formats say the same, and what is no statement is left out and counted."""

from __future__ import annotations

import json

import pytest

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.hipporag.knowledge import (
    MAX_CHARACTERS,
    PassageKnowledge,
    Triple,
    knowledge_from_json,
)
from nlp_retrieval.systems.hipporag.sources import OpenIeFile

HORT = SearchableItem(item_id="1", content="Erik Hort was born in Montebello.", metadata={"title": "Erik Hort"})
PLACE = SearchableItem(
    item_id="2", content="Montebello lies in Rockland County.\nIt is a village.", metadata={"title": "Montebello"}
)
HORT_SAYS = PassageKnowledge(("Erik Hort", "Montebello"), (Triple("Erik Hort", "was born in", "Montebello"),))
PLACE_SAYS = PassageKnowledge(("Montebello",), (Triple("Montebello", "lies in", "Rockland County"),))


def as_row(knowledge, **more):
    triples = [[triple.subject, triple.predicate, triple.object] for triple in knowledge.triples]
    return {**more, "extracted_entities": list(knowledge.entities), "extracted_triples": triples}


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def whole(path, *docs, indent=None, **more):
    path.write_text(json.dumps({"docs": list(docs)} | more, indent=indent), "utf-8")
    return path


def edited(item, **changes):
    return SearchableItem.model_validate(item.model_dump() | changes)


@pytest.mark.parametrize("indent", [None, 2])
def test_hipporags_own_file_is_keyed_by_the_text_of_the_passages(tmp_path, indent):
    docs = [
        as_row(HORT_SAYS, idx="chunk-1", passage="Erik Hort\nErik Hort was born in Montebello."),
        as_row(PLACE_SAYS, idx="chunk-2", passage=f"Montebello\n{PLACE.content}"),
    ]
    file = OpenIeFile(whole(tmp_path / "openie.json", *docs, indent=indent, avg_ent_chars=9.5, avg_ent_words=1.5))
    assert len(file) == 2
    assert file.of([PLACE, HORT]) == [PLACE_SAYS, HORT_SAYS]
    untitled = SearchableItem(item_id="x", content="Erik Hort  Erik Hort was born in Montebello.")
    assert file.of([untitled, edited(HORT, content="Erik Hort was born.")]) == [HORT_SAYS, None]


def test_lines_are_keyed_by_id_and_known_if_all_that_is_there_agrees(tmp_path):
    rows = [
        as_row(HORT_SAYS, doc_id="1", title="erik_hort", text=HORT.content),
        as_row(PLACE_SAYS, doc_id=2, passage=f"Montebello {PLACE.content}"),
    ]
    file = OpenIeFile(lines(tmp_path / "openie.jsonl", *rows))
    assert file.of([PLACE, HORT, edited(HORT, item_id="9")]) == [PLACE_SAYS, HORT_SAYS, None]
    assert file.of([edited(HORT, metadata={"title": "Hort"}), edited(HORT, content="Another.")]) == [None, None]
    assert file.of([edited(PLACE, content="Another."), edited(PLACE, metadata={})]) == [None, None]


def test_what_is_no_statement_is_left_out_and_counted():
    entities = ["Erik\tHort ", True, None, "", "  ", [["Montebello"]], "x" * (MAX_CHARACTERS + 1), "\ud800", "Erik Hort"]
    triples = [
        ["Erik Hort", "was born in", "Montebello"],
        ["a", "b"],
        ["a", "b", "c", "d"],
        ["a", None, "c"],
        ["a", "", "c"],
        "a b c",
    ]
    triples += [{"subject": "a"}, [["a"], "b", "c"], ["Erik Hort", "was born in", "Montebello"]]
    read = knowledge_from_json(entities, triples)
    assert read.knowledge == PassageKnowledge(("Erik Hort",), (Triple("Erik Hort", "was born in", "Montebello"),))
    assert read.dropped == 7 + 7


GOOD = json.dumps(as_row(HORT_SAYS, doc_id="1"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}\n", 'line 1: no "doc_id"'),
        ('{"docs": []}', "holds no passages"),
        ('{"docs": [{"passage": "a"}]}', 'entry 1 of "docs": no "extracted_entities"'),
        ('{"docs": ' + "[" * 1_000, "nested too deeply"),
        (f'{GOOD}\n{{"doc_id": ', "line 2: not valid JSON"),
        (f"{GOOD}\n{GOOD}\n", 'line 2: the id "1" occurs twice'),
        ('{"doc_id": "1", "extracted_entities": "x", "extracted_triples": []}', "line 1: the entities are no list"),
        ('{"doc_id": "1", "extracted_entities": ["' + "\\" + 'ud800"]}', "half of a surrogate pair"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_place(tmp_path, content, message):
    path = tmp_path / "openie.json"
    path.write_text(content, "utf-8")
    with pytest.raises(SourceError, match=message):
        OpenIeFile(path)
