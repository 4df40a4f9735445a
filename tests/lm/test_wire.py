"""No answer is waited for longer than was said, however a server sends it."""

from __future__ import annotations

import pytest
from chat_server import DRIPPING_BODY, DRIPPING_HEAD

from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.counting import CallCounts
from nlp_retrieval.processors.with_model import ClaimPhrases

CLAIMS = [f"red fox number {n} of blue whale" for n in range(4)]


@pytest.mark.parametrize("drip", [DRIPPING_HEAD, DRIPPING_BODY])
def test_a_server_that_sends_a_byte_now_and_then_is_not_waited_for_without_an_end(server, model, drip):
    server.answer = lambda body: drip
    lm = model(timeout=0.3, retries=1)
    with pytest.warns(RetrievalWarning, match=r"4 of 4 queries.*4 times .*timed out: no complete answer within 0\.3 s"):
        assert ClaimPhrases(lm, keep_query=False).process(CLAIMS) == [[claim] for claim in CLAIMS]
    assert lm.counts == CallCounts(calls=8, failures=8, degraded=4)
