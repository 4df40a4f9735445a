"""Targets that read what others say of passages, and the settings of the systems that use it."""

from __future__ import annotations

import json

import pydantic

from nlp_retrieval.errors import ConfigurationError, QueryError, SourceError
from nlp_retrieval.lm import UnusableAnswerError
from nlp_retrieval.rerankers.multi_signal.profile import Profile, load_profile
from nlp_retrieval.service.index_service import SearchBody
from nlp_retrieval.service.refusal import faults_of
from nlp_retrieval.systems.evidence.service import AuditBody, IndexBody, PassageSearchBody, VerifyBody
from nlp_retrieval.systems.hipporag.knowledge.extraction import read_or_explain
from nlp_retrieval.systems.hipporag.knowledge.from_json import ENTITY_TYPES, MAX_CHARACTERS, MAX_STATEMENTS
from nlp_retrieval.systems.hipporag.knowledge.openie_file import OpenIeFile
from nlp_retrieval.systems.hipporag.knowledge.statements import PassageKnowledge
from nlp_retrieval.systems.hipporag.settings import HippoRagSettings
from nlp_retrieval.systems.policy.config import StudyConfig
from nlp_retrieval.text.printing import printable

from .inputs import a_file, as_text, item_of

REFUSED = (ConfigurationError, SourceError)
BODIES = (SearchBody, IndexBody, PassageSearchBody, VerifyBody, AuditBody)
SECRET = "sk-0123456789abcdefghij"


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
        try:
            found = read_or_explain(n_passages, text) or {}
        except UnusableAnswerError:
            continue
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


def profiles(data: bytes) -> bool:
    """A profile: it is read as itself again, and its questions are asked in words."""
    try:
        read = load_profile(a_file("profile.yaml", data))
    except REFUSED:
        return False
    assert Profile.from_mapping(read.model_dump(mode="json")) == read
    assert [question.number for question in map(read.question, range(1, len(read.questions) + 1))] == [
        *range(1, len(read.questions) + 1)
    ]
    for question in read.questions:
        assert "{subject}" not in question.asked_of("Japan")
        assert "{subject}" not in question.asked_of(None)
    return True


def studies(data: bytes) -> bool:
    """The configuration of a study."""
    try:
        read = StudyConfig.read(a_file("study.yaml", data))
    except (*REFUSED, QueryError):
        return False
    assert isinstance(read.keywords, bool)
    return True


def bodies(data: bytes) -> bool:
    """What a service is asked: unknown fields and converted values are refused, and the message repeats nothing."""
    taken, said = False, ""
    for body in BODIES:
        try:
            read = body.model_validate_json(data)
        except pydantic.ValidationError as error:
            said += faults_of([{"loc": fault["loc"][-1:], "msg": fault["msg"]} for fault in error.errors()])
            continue
        taken = True
        given = json.loads(data)
        assert set(given) <= set(body.model_fields)
        _check_same(read.model_dump(mode="json"), given)
    assert SECRET not in said
    return taken


def _check_same(read: object, given: object) -> None:
    """Whether all that was given was taken as it stands."""
    if isinstance(given, dict) and isinstance(read, dict):
        for key, value in given.items():
            _check_same(read[key], value)
    elif isinstance(given, list) and isinstance(read, list):
        for one, other in zip(read, given, strict=True):
            _check_same(one, other)
    else:
        assert type(read) is type(given) or isinstance(read, int)
        assert read == given


OF_KNOWLEDGE = [openie, knowledge_answers, hipporag, profiles, studies, bodies]
