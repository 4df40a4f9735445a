"""``nlp-retrieval evidence verify`` with a file of claims: every format, and one verdict each."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cli.commands import refused, run

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.claim_files import is_claim_file, read_claims, verdicts_of
from nlp_retrieval.systems.evidence.commands.project import open_project
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerdict, ClaimVerifier
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier

from .world import CLAIM, make_project

OTHER = "Walnut orchards bloom in Chile."


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two sources."""
    return make_project(tmp_path_factory.mktemp("claims"))


class Counting(ClaimVerifier):
    """Remembers the claims that it verified."""

    def verify_all(self, claims, claim_type="C2") -> list[ClaimVerdict]:
        self.verified = [*getattr(self, "verified", []), *claims]
        return super().verify_all(claims, claim_type)


@pytest.fixture
def judging(world: Path) -> Counting:
    """Verifies claims by the project."""
    return Counting(open_project(world / "project", None), LexicalVerifier())


def test_a_file_of_claims_is_verified_in_order(world: Path) -> None:
    rows = [("a", CLAIM, "C1", "=1+1"), ("b", OTHER, "", "x"), ("c", CLAIM, "C1", "y")]
    with (world / "claims.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "claim", "type", "topic"), *rows])
    done = run("evidence", "verify", "project", "claims.csv", "--json", folder=world)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    alone = json.loads(run("evidence", "verify", "project", CLAIM, "--type", "C1", "--json", folder=world).stdout)
    assert [each["id"] for each in told] == ["a", "b", "c"]
    assert {key: told[0][key] for key in alone} == alone
    assert told[2] | {"id": "a", "fields": told[0]["fields"]} == told[0], "a claim that comes twice is told twice"
    assert told[0]["fields"] == {"topic": "=1+1"}
    assert "3 claims: 2 SUPPORTED, 1 UNVERIFIED" in done.stderr


CLAIMS = [("1", CLAIM, "C2"), ("2", OTHER, "C2")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", f"\ufeffclaim\n{CLAIM}\n\n{OTHER}\n"),
        ("a.csv", f"Claim;topic\n{CLAIM};x\n{OTHER};y\n"),
        ("a.tsv", f"type\tclaim\n\t{CLAIM}\nC2\t{OTHER}\n"),
        ("a.jsonl", f'{{"claim": "{CLAIM}"}}\n{{"claim": "{OTHER}", "id": 2}}\n'),
        ("a.txt", f"{CLAIM}\r\n\r\n{OTHER}"),
        ("a", f"{CLAIM}\n{OTHER}\n"),
        ("a", f'"id","claim"\n1,{CLAIM}\n,{OTHER}\n'),
        ("a", f'{{"claim": "{CLAIM}"}}\n{{"claim": "{OTHER}"}}\n'),
    ],
)
def test_claims_are_read_from_every_format(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content, newline="")
    assert is_claim_file(str(path))
    assert [(each.id, each.claim, each.claim_type) for each in read_claims(str(path))] == CLAIMS


@pytest.mark.parametrize(
    ("content", "claims"),
    [
        ("1. Rain fell.\n2) Wind rose.\n\n3. May was dry.\n", ["Rain fell.", "Wind rose.", "May was dry."]),
        (
            "- Rain fell.\n  * Wind rose - a lot.\n\u2022 May was dry.\n- \n",
            ["Rain fell.", "Wind rose - a lot.", "May was dry."],
        ),
        ("3. Mai war trocken.\n1. Mai war nass.\n", ["3. Mai war trocken.", "1. Mai war nass."]),
        ("Rain - much of it - fell.\n-5 degrees fell.\n", ["Rain - much of it - fell.", "-5 degrees fell."]),
    ],
)
def test_marks_of_a_list_are_no_part_of_its_claims(content: str, claims: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(content)
    assert [each.claim for each in read_claims(str(tmp_path / "a.md"))] == claims


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b'claim\nfine\n"never closed\nx\n', r"a\.csv, line 3: not a row of CSV: unexpected end of data"),
        ("a.csv", b"topic,year\nx,1\n", r'a\.csv, line 2: no column "claim" \(found: "topic", "year"\)'),
        ("a.csv", b"claim,id\nfine,1\n ,2\n", r'a\.csv, line 3: "claim" has no text'),
        ("a.csv", b"claim\n", r"a\.csv: there is no claim in it"),
        ("a.txt", b"fine\n" + b"x" * 10_001, r"a\.txt, line 2: a claim of 10,001 characters; at most 10,000"),
        ("a.jsonl", b'{"claim": "fine"}\n{"claim": 3}\n', r'a\.jsonl, line 2: "claim" has no text'),
        ("a.csv", b"claim\n" + b"".join(b"%d\n" % n for n in range(100_001)), "line 100002: more than 100,000 claims"),
        ("a.xlsx", b"PK\x03\x04", r"not from \.xlsx; save it as one of these"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_the_line(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=said):
        read_claims(str(tmp_path / name))


def test_standard_input_says_by_its_first_line_what_it_is_and_is_named_in_errors(world: Path) -> None:
    done = run("evidence", "verify", "project", "-", folder=world, stdin=f"claim,id\n{CLAIM},x\n")
    assert done.stdout.startswith("SUPPORTED")
    done = run("evidence", "verify", "project", "-", folder=world, stdin="claim,id\nx,1\n,2\n")
    refused(done, 2, 'standard input, line 3: "claim" has no text')


@pytest.mark.parametrize("text", [CLAIM, "It is in claims.csv", "GPT-4.5", "x" * 10_000, "Vienna"])
def test_a_claim_is_no_file(text: str) -> None:
    assert not is_claim_file(text)


def test_a_file_that_is_not_there_is_no_claim(world: Path) -> None:
    refused(run("evidence", "verify", "project", "nowhere.csv", folder=world), 2, "nowhere.csv: no such file")


def test_a_claim_is_verified_once_however_often_and_far_apart_it_comes(judging: Counting, tmp_path: Path) -> None:
    fillers = [f"Claim number {number}." for number in range(20)]
    (tmp_path / "claims.txt").write_text("\n".join([CLAIM, CLAIM, *fillers, CLAIM]))
    claims = read_claims(str(tmp_path / "claims.txt"))
    done = [pair for verdicts in verdicts_of(claims, judging) for pair in verdicts]
    assert [each.id for each, _ in done] == [str(number) for number in range(1, 24)]
    assert sorted(judging.verified) == sorted([CLAIM, *fillers])
    assert len({json.dumps(verdict) for each, verdict in done if each.claim == CLAIM}) == 1
