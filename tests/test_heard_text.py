"""What the record says was heard, against a recogniser that knows nothing of our durations (benchmarks/heard_text.py)."""

from __future__ import annotations

import pytest

from tests.recogniser import require


@pytest.mark.slow
def test_the_recogniser_agrees_about_what_was_heard() -> None:
    """At every 10 ms cut: off by one word at most, but for cuts where the recogniser's own times are off."""
    require()
    import asyncio

    from benchmarks.heard_text import cut_errors, lead_s, recognised, speak_all

    for language in ("en", "zh"):
        replies = [reply for reply in asyncio.run(speak_all(4)) if reply.language == language]
        words = [recognised(reply) for reply in replies]
        lead = lead_s(replies, words)
        errors = [error for reply, found in zip(replies, words, strict=True) for error in cut_errors(reply, found, lead)]
        share = sum(abs(error) > 1 for error in errors) / len(errors)
        print(f"{language}: {share:.1%} of {len(errors)} cuts off by more than one")
        assert share <= 0.01
        assert max(map(abs, errors)) <= 2
