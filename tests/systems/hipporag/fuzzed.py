"""Targets that read what others say of passages, the settings of HippoRAG 2, and the files of its segments."""

from __future__ import annotations

from fuzz.inputs import a_file, as_text, item_of, segment
from fuzz.settings import REFUSED, SECRET

from nlp_retrieval.errors import IndexDamagedError, SourceError
from nlp_retrieval.systems.hipporag.extraction import knowledge_in
from nlp_retrieval.systems.hipporag.graph import open_knowledge
from nlp_retrieval.systems.hipporag.knowledge import ENTITY_TYPES, MAX_CHARACTERS, MAX_STATEMENTS, PassageKnowledge
from nlp_retrieval.systems.hipporag.settings import HippoRagSettings
from nlp_retrieval.systems.hipporag.sources import OpenIeFile
from nlp_retrieval.text.printing import printable

COLUMNS = ("known", "entities", "triples", "triple_ends", "texts", "text_offsets", "statement_rows", "statement_triples")
KNOWLEDGE = tuple(f"{name}.npy" for name in (*COLUMNS, *(f"synonym_{end}" for end in ("sources", "targets", "similarities"))))
KNOWLEDGE += ("knowledge_vectors.npy",)


def openie(data: bytes) -> bool:
    """A file of entities and triples: what is believed is short, plain text, and of the passage that it is asked about."""
    try:
        read = OpenIeFile(a_file("openie.json", data))
    except SourceError:
        return False
    asked = [item_of("d1", "A fox runs.", "Fox"), item_of("7", "Trees."), item_of("d1", "Another text.", "Fox")]
    found = read.of(asked)
    assert read.of(asked) == found
    for one in found:
        if one is not None:
            _check_knowledge(one)
    return len(read) > 0


def knowledge_answers(data: bytes) -> bool:
    """What a model says of passages: of those that were shown alone, and of the right form."""
    text = as_text(data)
    used = False
    for n_passages in (1, 2):
        found = knowledge_in(n_passages, text) or {}
        assert set(found) <= set(range(n_passages))
        for one in found.values():
            used = True
            _check_knowledge(one.knowledge)
            assert set(one.types) <= set(one.knowledge.entities)
            assert set(one.types.values()) <= ENTITY_TYPES
    return used


def _check_knowledge(knowledge: PassageKnowledge) -> None:
    assert len(knowledge.entities) <= MAX_STATEMENTS
    assert len(set(knowledge.entities)) == len(knowledge.entities)
    assert len(knowledge.triples) <= MAX_STATEMENTS
    parts = [part for one in knowledge.triples for part in (one.subject, one.predicate, one.object)]
    for text in (*knowledge.entities, *parts):
        assert 0 < len(text) <= MAX_CHARACTERS
        assert printable(text) == text
        text.encode()


def hipporag(data: bytes) -> bool:
    """The settings of HippoRAG 2: they are read as themselves again, and no key that is written out is in a message."""
    said = ""
    try:
        read = HippoRagSettings.read(a_file("hipporag.yaml", data))
    except REFUSED as error:
        said = str(error)
    assert SECRET not in said
    if said:
        return False
    assert SECRET not in (read.llm.api_key or "") + (read.embedding.api_key or "")
    assert HippoRagSettings.of(read.model_dump(mode="json")) == read
    assert all(isinstance(line, str) for line in (*read.unused(), read.storage.database))
    return True


def knowledge_tables(data: bytes) -> bool:
    """What passages say: what opens can be walked from every entity."""
    opened = segment("knowledge", KNOWLEDGE, data)
    try:
        graph = open_knowledge([opened]).weighted(None, passages=True).graph
    except IndexDamagedError:
        return False
    assert ((graph.neighbours >= 0) & (graph.neighbours < graph.n_nodes)).all()
    return True


OF_HIPPORAG = [openie, knowledge_answers, hipporag, knowledge_tables]
