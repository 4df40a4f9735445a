"""``nlp-retrieval evidence verify`` with a file of claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.commands import refused, run

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.commands.claims import read_claims

from .world import CLAIM, make_project

OTHER = "Walnut orchards bloom in Chile."


def test_a_file_of_claims_is_verified_in_order(tmp_path: Path) -> None:
    make_project(tmp_path)
    (tmp_path / "claims.csv").write_text(f"id,claim,type,topic\na,{CLAIM},C1,x\nb,{OTHER},,y\nc,{CLAIM},C1,z\n")
    done = run("evidence", "verify", "project", "claims.csv", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    alone = json.loads(run("evidence", "verify", "project", CLAIM, "--type", "C1", "--json", folder=tmp_path).stdout)
    assert [each.pop("id") for each in told] == ["a", "b", "c"]
    assert told[0] == told[2] == alone
    assert told[1]["verification_status"] == "UNVERIFIED"
    assert "3 claims: 2 SUPPORTED, 1 UNVERIFIED" in done.stderr
    refused(run("evidence", "verify", "project", "nowhere.csv", folder=tmp_path), 2, "nowhere.csv: no such file")
    (tmp_path / "claims.md").write_text(CLAIM)
    refused(run("evidence", "verify", "project", "claims.md", folder=tmp_path), 2, "claims.md: a file of claims ends in .csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", f"\ufeffclaim\n{CLAIM}\n{OTHER}\n"),
        ("A.CSV", f"claim\n{CLAIM}\n{OTHER}\n"),
        ("a.jsonl", f'{{"claim": "{CLAIM}"}}\n{{"claim": "{OTHER}", "id": 2}}\n'),
        ("a.txt", f"{CLAIM}\r\n\r\n{OTHER}"),
    ],
)
def test_claims_are_read_from_every_format(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, newline="")
    read = read_claims(str(tmp_path / name))
    assert read == [("1", CLAIM, "C2"), ("2", OTHER, "C2")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("topic,year\nx,1\n", r'a\.csv, line 2: no column "claim" \(found: "topic", "year"\)'),
        ("claim,id\nfine,1\n ,2\n", r'a\.csv, line 3: "claim" has no text'),
        ("claim,type\nfine,C9\n", r"a\.csv, line 2: \"type\" is 'C9'"),
        ("claim\n", r"a\.csv: there is no claim in it"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_the_line(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(SourceError, match=said):
        read_claims(str(tmp_path / "a.csv"))
