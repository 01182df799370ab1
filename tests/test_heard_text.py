"""What the record says was heard, against a recogniser that knows nothing of our durations (benchmarks/heard_text.py)."""

from __future__ import annotations

import pytest

from tests.recogniser import require


@pytest.mark.slow
def test_the_recogniser_agrees_about_what_was_heard() -> None:
    """At every 10 ms cut: off by one word at most. Where its times say more, what it hears behind the cut counts."""
    require()
    import asyncio

    from benchmarks.heard_text import cut_errors, lead_s, recognised, settled, speak_all

    for language in ("en", "zh"):
        replies = [reply for reply in asyncio.run(speak_all(4)) if reply.language == language]
        words = [recognised(reply) for reply in replies]
        lead = lead_s(replies, words)
        by_reply = [cut_errors(reply, found, lead) for reply, found in zip(replies, words, strict=True)]
        errors = [error for of_reply in by_reply for error in of_reply]
        share = sum(abs(error) > 1 for error in errors) / len(errors)
        print(f"{language}: {share:.2%} of {len(errors)} cuts off by more than one by the recogniser's times")
        assert share <= 0.01
        decided = [error for reply, of_reply in zip(replies, by_reply, strict=True) for error in settled(reply, of_reply)]
        assert max(map(abs, decided)) <= 1
