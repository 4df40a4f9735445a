"""Abbreviations are found where a text defines them, and nowhere else."""

import pytest

from nlp_retrieval.text.abbreviations import abbreviations_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Its nationally determined contributions (NDCs) are new.", [("NDC", "nationally determined contributions")]),
        ("The NDC (nationally determined contribution) is new.", [("NDC", "nationally determined contribution")]),
        ("From land use, land-use change and forestry (LULUCF) come", [("LULUCF", "land use, land-use change and forestry")]),
        ("tonnes of carbon dioxide equivalent (CO2e)", [("CO2e", "carbon dioxide equivalent")]),
        ('The Internal Revenue Service ("IRS")', [("IRS", "Internal Revenue Service")]),
        ("Agence française de développement (the « AFD », Paris)", [("AFD", "Agence française de développement")]),
        ("a cut by 2030 (see Annex), in dollars (USD) (EU)", []),
        ("the plan (plan) of nothing (IT). World (The) ()", []),
    ],
)
def test_definitions_are_found(text: str, found: list[tuple[str, str]]) -> None:
    assert abbreviations_of(text) == found
