"""The scripted responder: right intents in both languages, streamed like an LLM, labelled as a script."""

from __future__ import annotations

import asyncio
import re
import time

import pytest

from tests.llm_replay import outcome, read
from voice_agent.errors import InputError
from voice_agent.llm.deltas import ChatModel, End, TextDelta
from voice_agent.llm.demo import LABEL, DemoChat, answer_to, tokens_of


async def ask(*said: str) -> str:
    got = await outcome(DemoChat(pace=0).reply([{"role": "user", "content": text} for text in said]))
    assert got.error is None
    assert isinstance(got.deltas[-1], End)
    return got.text


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("Where is my order 482913?", "Order 482913"),
        ("Where is my order?", "What is your order number?"),
        ("482913", "482913"),
        ("I want a REFUND!", "30 days"),
        ("My parcel arrived broken", "sorry"),
        ("How long does shipping take?", "2 to 4 days"),
        ("Are you open on Sunday?", "Saturdays"),
        ("How much is it?", "$19.90"),
        ("Can I speak to a human?", "put you through"),
        ("Who are you?", "scripted"),
        ("thanks", "welcome"),
        ("Hello", "How can I help"),
        ("xyzzy", "scripted demo"),
        ("", "scripted demo"),
        ("我的订单 482913 到哪了？", "订单482913"),
        ("我的快递到哪了", "订单号"),
        ("我要退货", "30天"),
        ("东西坏了，我要投诉", "抱歉"),
        ("周末营业吗", "周日休息"),
        ("多少钱", "99元"),
        ("你是谁", "演示"),
        ("谢谢", "不客气"),
        ("你好", "您好"),
        ("呜呜", "脚本"),
    ],
)
async def test_intents(question: str, part: str) -> None:
    answer = await ask(question)
    assert part in answer
    assert "{" not in answer
    assert bool(re.search("[一-鿿]", answer)) == bool(re.search("[一-鿿]", question))


async def test_repeated_questions_get_other_answers() -> None:
    assert await ask("hello") != await ask("hello", "hello")


async def test_content_blocks_and_other_roles() -> None:
    messages = [
        {"role": "system", "content": "refund"},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": "refund"},
    ]
    got = await outcome(DemoChat(pace=0).reply(messages))
    assert "help" in got.text
    assert (await outcome(DemoChat(pace=0).reply([]))).text


@pytest.mark.parametrize("text", ["Hello, it's $19.90!\n\n1. **Go**", "您好，普通配送6元。", "a\u200db 👩‍👧 \x00", ""])
def test_tokens_join_to_the_text(text: str) -> None:
    tokens = tokens_of(text)
    assert "".join(tokens) == text
    assert all(len(token) <= 8 for token in tokens)


async def test_streams_in_time() -> None:
    model = DemoChat(pace=0.1)
    started = time.perf_counter()
    arrived = [
        time.perf_counter() - started
        async for delta in model.reply([{"role": "user", "content": "hi"}])
        if isinstance(delta, TextDelta)
    ]
    assert arrived[0] >= 0.02
    assert len(arrived) > 8
    assert arrived[-1] - arrived[0] > 0.01


async def test_same_seed_same_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(asyncio, "sleep", lambda seconds: _recorded(waits, seconds))
    for _ in range(2):
        await outcome(DemoChat(seed=3).reply([{"role": "user", "content": "hi"}]))
    half = len(waits) // 2
    assert waits[:half] == waits[half:]
    assert 0.2 < waits[0] < 0.3


async def _recorded(waits: list[float], seconds: float) -> None:
    waits.append(seconds)


async def test_is_a_chat_model_and_a_source() -> None:
    model: ChatModel = DemoChat(pace=0)
    assert "demo" in LABEL
    assert (await read(model.reply([{"role": "user", "content": "hello"}]))).text == answer_to(["hello"])


def test_bad_pace() -> None:
    with pytest.raises(InputError, match="pace"):
        DemoChat(pace=-1)
