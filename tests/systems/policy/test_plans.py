"""Plans are read from their files, with page, country and edition; what a name does not say, a manifest can."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents_model.pdfs import content, pdf_of

from nlp_retrieval import RetrievalWarning
from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.policy.plans import PlansLoader, named_in


def test_names_of_files_say_country_and_edition() -> None:
    for document, *expected in [
        ("costa-rica_second NDC-2020-12-29.pdf", "Costa Rica", [2020], 2),
        ("EU_NDC_Submission_20201217.pdf", "EU", [2020], None),
        ("Japan/2021.pdf", "Japan", [2021], None),
        ("2021/JAPAN updated NDC v2.docx", "Japan", [2021], 2),
        ("Côte d\u2019Ivoire - 1st NDC (2016).html", "Côte d\u2019Ivoire", [2016], 1),
        ("Kenya 2020 to 2030.txt", "Kenya", [2020, 2030], None),
        ("NDC 2021.pdf", "", [2021], None),
        ("Trinidad and Tobago 2021.pdf", "Trinidad and Tobago", [2021], None),
        ("Republic of Korea - update to the NDC 2021.pdf", "Republic of Korea", [2021], None),
        ("Guinea-Bissau/the second NDC.pdf", "Guinea-Bissau", [], 2),
        ("Co\u0302te d\u2019Ivoire 2022.pdf", "Côte d\u2019Ivoire", [2022], None),
        ("timor-leste-2022.pdf", "Timor-Leste", [2022], None),
        ("United-Arab-Emirates_2023.pdf", "United Arab Emirates", [2023], None),
        ("TU\u0308RKI\u0307YE 2023.pdf", "T\u00fcrkiye", [2023], None),
        ("Antigua & Barbuda 2021.pdf", "Antigua & Barbuda", [2021], None),
        ("Korea, Republic of 2021.pdf", "Korea, Republic of", [2021], None),
        ("Congo (Democratic Republic of the) 2021.pdf", "Congo (Democratic Republic of the)", [2021], None),
        ("NEW ZEALAND 2021 copy.pdf", "New Zealand", [2021], None),
        ("Senegal CDN 2020 (French) - signed.pdf", "Senegal", [2020], None),
        ("Marshall Islands LTS v2.1.pdf", "Marshall Islands", [], 2),
        ("Fiji\u2019s NDC 3.0 2025.pdf", "Fiji", [2025], 3),
        ("中国2021年.pdf", "中国", [2021], None),
        ("Kenya_NDC_28122020.pdf", "Kenya", [2020], None),
        ("Segunda Contribución Determinada a Nivel Nacional del Per\u00fa.pdf", "Per\u00fa", [], 2),
        ("FR_NDC_2021.pdf", "FR", [2021], None),
        ("2021/EN.pdf", "", [2021], None),
        ("CONTRIBUCION DE LA REPUBLICA DOMINICANA 20152020.pdf", "Republica Dominicana", [], None),
        ("LA PAZ 2021.pdf", "La Paz", [2021], None),
        ("Plan Climat Le Mans.pdf", "Le Mans", [], None),
        ("Le plan climat de la France.pdf", "France", [], None),
        ("NDC_update_2_Nauru.pdf", "Nauru", [], 2),
        ("Chile_15 de julio de 2021.pdf", "Chile", [2021], None),
        ("June 2021 Kenya NDC update 24.12.2020.pdf", "Kenya", [2021, 2020], None),
        ("French Polynesia 2021 (French).pdf", "French Polynesia", [2021], None),
        ("Long-term_low-carbon_strategy_Fiji.pdf", "Fiji", [], None),
        ("Long Beach Climate Change Amendment.pdf", "Long Beach", [], None),
    ]:
        named = named_in(document)
        assert [named.subject, named.years, named.edition] == expected, document


def test_passages_have_page_country_and_year(tmp_path: Path) -> None:
    pages = [content(f"Wind park {number} is planned.", "It is large.") for number in range(3)]
    (tmp_path / "Ostland 2024.pdf").write_bytes(pdf_of(*pages, title="Ostland: climate plan"))
    (tmp_path / "Ile").mkdir()
    (tmp_path / "Ile" / "2019.html").write_text("<title>Plan</title><p>Tidal power supplies the island.</p>", "utf-8")
    items = list(PlansLoader(tmp_path, size=6, overlap=0).stream())
    pdf = [item for item in items if item.metadata["country"] == "Ostland"]
    assert [(item.metadata["page"], item.content.split(" is")[0]) for item in pdf if "Wind" in item.content] == [
        (1, "Wind park 0"), (2, "Wind park 1"), (3, "Wind park 2"),
    ]  # fmt: skip
    assert [item.metadata["position"] for item in pdf] == list(range(len(pdf)))
    assert {(item.metadata["year"], item.metadata["document"], item.title) for item in pdf} == {(2024, "Ostland 2024.pdf", "")}
    (html,) = [item for item in items if item.metadata["country"] == "Ile"]
    assert "page" not in html.metadata
    assert html.metadata["year"] == 2019


def test_spellings_of_one_name_are_one_country(tmp_path: Path) -> None:
    for name in (
        "Cabo Verde 2016", "cabo-verde-2021", "CABO VERDE v3", "The Gambia 2016", "Gambia, The 2021", "TO 2021", "DE 2021",
        "Republic of Korea 2021", "Korea, Republic of 2016", "Trinidad & Tobago 2016", "Trinidad and Tobago 2021",
        "Baden 2021", "Baden-Baden 2021",
    ):  # fmt: skip
        (tmp_path / f"{name}.txt").write_text("Wind supplies half the power.", "utf-8")
    assert len({item.metadata["country"] for item in PlansLoader(tmp_path).stream()}) == 8


def test_a_manifest_says_what_names_do_not(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "Ile 2024.txt"):
        (tmp_path / name).write_text(f"Wind supplies half the power, says {name}.", "utf-8")
    rows = "file,country,year,edition,ministry\na.txt,Ostland,2019.0,first,Energy\nb.txt,Ostland,2024.0,2nd,Power\n"
    (tmp_path / "manifest.csv").write_text(rows, "utf-8")
    for path, n_items in ((tmp_path, 3), (tmp_path / "manifest.csv", 2)):
        found = {str(item.metadata["document"]): item.metadata for item in PlansLoader(path).stream()}
        assert len(found) == n_items
        assert (found["a.txt"]["country"], found["a.txt"]["year"], found["a.txt"]["edition"]) == ("Ostland", 2019, 1)
        assert (found["b.txt"]["edition"], found["b.txt"]["ministry"]) == (2, "Power")


def test_what_nothing_says_and_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "Ile.txt").write_text("Tidal power.", "utf-8")
    (tmp_path / "Ostland 2019.pdf").write_bytes(b"%PDF-1.4 nothing")
    with (
        pytest.warns(RetrievalWarning, match=r"files skipped because they cannot be read: 1 .*Ostland 2019\.pdf"),
        pytest.warns(RetrievalWarning, match=r"1 documents have no year or edition.*Ile\.txt.*manifest\.csv can say it"),
    ):
        assert len(list(PlansLoader(tmp_path).stream())) == 1
    (tmp_path / "climate plan.txt").write_text("Wind.", "utf-8")
    with pytest.raises(SourceError, match=r"climate plan\.txt: its name does not say which country"):
        list(PlansLoader(tmp_path).stream())
