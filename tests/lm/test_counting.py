"""A recording counts by model, in every thread, and its sum is the sum over models."""

from __future__ import annotations

from nlp_retrieval.lm.counting import CallCounter, CallCounts, count, record_calls, summed


def test_a_recording_knows_the_count_of_each_model_and_of_all() -> None:
    small, large = CallCounter("openai/small"), CallCounter("openai/large")
    with record_calls() as outer:
        count(small, CallCounts(calls=1, tokens_in=100))
        with record_calls() as inner:
            count(large, CallCounts(calls=2, tokens_in=50))
            count(small, CallCounts(cache_hits=1))
    count(small, CallCounts(calls=10))
    assert inner.by_model == {"openai/large": CallCounts(calls=2, tokens_in=50), "openai/small": CallCounts(cache_hits=1)}
    assert list(outer.by_model) == ["openai/large", "openai/small"]
    assert outer.by_model["openai/small"] == CallCounts(calls=1, cache_hits=1, tokens_in=100)
    assert outer.counts == CallCounts(calls=3, cache_hits=1, tokens_in=150) == summed(outer.by_model.values())
    assert small.counts == CallCounts(calls=11, cache_hits=1, tokens_in=100)
    assert small.by_model == {"openai/small": small.counts}
