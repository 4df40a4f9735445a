"""No field of a profile is accepted and then read by nothing."""

from __future__ import annotations

from core.components.test_settings_take_effect import check_fields

from nlp_retrieval.rerankers.multi_signal.profile import Profile


def test_every_field_of_a_profile_is_read() -> None:
    check_fields(Profile)
