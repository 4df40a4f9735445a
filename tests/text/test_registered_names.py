"""Names that people register."""

import pytest

from nlp_retrieval.text.registered_names import registered_name


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("news.bbc.co.uk", "bbc.co.uk"),
        ("alice.github.io", "github.io"),
        ("localhost", "localhost"),
        ("192.0.2.7", "192.0.2.7"),
    ],
)
def test_the_registered_name_is_the_public_suffix_and_one_label(host: str, name: str) -> None:
    assert registered_name(host) == name
