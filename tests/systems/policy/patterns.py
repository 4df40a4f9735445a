"""The texts that the patterns of policy are worst at, by module, as ``attacks.growth`` runs them."""

from __future__ import annotations

POLICY = {
    "systems/policy/editions.py": """
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.systems.policy import editions
for text in ("1" * N, "1." * N, "2025-01-01T" + "1" * N, "2025-" * N, " " * N, "-" * N, "a" * 900 + "1" * 99):
    editions.edition_numbers([SearchableItem(item_id="a", content="", metadata={"country": text, "version": text})])
for text in ("a " * N, "a" * N, "_" * N, "a b " * N, " ".join(map(str, range(N // 5))), "." * N, "\\n" * N):
    editions.aligned([text, "x"], [text, text])
    editions._TOKEN.findall(text)
""",
    "systems/policy/hop/ranking.py": """
from nlp_retrieval.systems.policy.hop.ranking import change_asked
for text in ("what " * N, "the " * N, "since the " * N, "the previous " * N, "no longer " * N, "new " * N, "was " * N,
             " " * N, "added or " * N, "?" * N, "which" + " a" * N, "in the later " * N, "previous a " * N, "about " * N,
             "what" + " " * N):
    change_asked(text)
    change_asked(text, "added")
""",
    "systems/policy/answers.py": """
from nlp_retrieval import SearchableItem
from nlp_retrieval.systems.policy.answers import page_of
for text in ("a" * N, "a " * N, "a" + " " * N, " " * N, "a b " * N, ("a" + " " * 99) * (N // 99), "\\n" * N, "(" * N):
    item = SearchableItem(item_id="a", content=text, metadata={"page": 1, "page_starts": [[1, 0], [2, 5]]})
    for sentence in (text[:300], text[:300] + " z", "a " * 150 + "z"):  # what is shown of a sentence has an end
        page_of(item, sentence)
""",
    "systems/policy/values.py": """
from nlp_retrieval.systems.policy.values import values_of
for text in ("emi" * N, "emission " * N, "net " * N, "net zero " * N, "carbon neutral " * N, "not " * N, "business " * N,
             "base year " * N, "cut 5% of emissions by 2030 " * (N // 9), ", 2030" * N, "$5 " * N, " " * N,
             "contribute" + "e" * N, "annual " * N, "reference " * N, "A. " * N, "emission 5 Mt CO2e in 2010. " * (N // 9)):
    for kind in ("target", "baseline", "finance"):
        values_of(text, kind)
""",
    "systems/policy/plans.py": """
from nlp_retrieval.systems.policy.plans import named_in
for text in ("a" * N, "a'" * N, "2021" * N, "2021 " * (N // 99), "v1 " * N, "1" * N, "_" * N, "/" * N, "first " * N):
    named_in(text[:N])
""",
}
