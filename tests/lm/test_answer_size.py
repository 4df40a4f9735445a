"""No server fills the memory: of an answer without an end, of an error's too, no more is read than an answer can take."""

from __future__ import annotations

import gzip

import pytest
from chat_server import Flood, asked, fields
from soaking import mostly_soaked

from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.counting import CallCounts
from nlp_retrieval.lm.engine import LARGEST_ANSWER
from nlp_retrieval.processors.with_model import ClaimPhrases

CLAIM = "red fox of blue whale"
PART = b"x" * 2**16
UNENDING = b"\r\nContent-Type: application/json\r\n\r\n"
CHUNK = b"%x\r\n%s\r\n" % (len(PART), PART)
FLOODS = {
    "to its end": (b"HTTP/1.1 200 OK" + UNENDING, PART),
    "of a length": (b"HTTP/1.1 200 OK\r\nContent-Length: 1200000000" + UNENDING, PART),
    "in chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked" + UNENDING, CHUNK),
    "of an error": (b"HTTP/1.1 400 Bad Request" + UNENDING, PART),
    "that asks to be tried again": (b"HTTP/1.1 503 Service Unavailable" + UNENDING, PART),
    "of blanks": (b"HTTP/1.1 200 OK" + UNENDING, b" " * 2**16),
    "compressed": (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip" + UNENDING, gzip.compress(bytes(2**25))),
}


@pytest.mark.parametrize("kind", mostly_soaked(list(FLOODS), ["in chunks", "compressed"]))
def test_an_answer_without_an_end_is_left_and_counted_and_costs_the_query_alone(server, model, kind):
    flood = Flood(*FLOODS[kind])
    server.answer = lambda body: flood if asked(body, "claim") == CLAIM else fields(phrases=["x y"])
    lm = model(retries=3, timeout=300, calls_at_once=1)
    with pytest.warns(RetrievalWarning, match=r"1 of 2 queries.*1 times .*longer than 4,194,304 bytes; the rest was not read"):
        assert ClaimPhrases(lm, keep_query=False).process([CLAIM, "another claim of a whale"]) == [[CLAIM], ["x y"]]
    assert lm.counts == CallCounts(calls=2, tokens_in=100, tokens_out=10, failures=1, degraded=1)
    assert flood.sent < 2 * LARGEST_ANSWER + 2**23  # the second for what the two sockets hold
