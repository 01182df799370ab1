"""A scripted customer-service responder that streams like an LLM, for trying things out without one. It is not an
LLM.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tts_engine.text.language import HAN, is_han
from voice_agent.errors import InputError
from voice_agent.llm.chunks import content_text
from voice_agent.llm.deltas import Delta, End, Message, TextDelta

LABEL = "demo: scripted answers, no language model"
_SCRIPT = Path(__file__).with_name("demo.yaml")
_TOKEN = re.compile(rf"[{HAN}]{{1,2}}|\s?\d{{1,3}}|\s?[^\W\d_]{{1,6}}|\s?[^\s\w]|\s+|.", re.DOTALL)
_NUMBER = re.compile(r"(?<![\d.])\d{4,12}(?![\d.])")


class DemoChat:
    """A `ChatModel` that answers the last user message by its key words, in its language (English or Chinese).

    ``pace`` scales the waits between tokens: 1 is a quick LLM, 0 does not wait at all. ``seed`` makes the waits, which
    vary a little from token to token, repeatable. Always says that it is a script when asked who it is.
    """

    label = LABEL

    def __init__(self, *, pace: float = 1.0, seed: int = 0) -> None:
        if not 0 <= pace <= 100:
            raise InputError(f"pace is {pace}: use 0 (no waiting) to 100")
        self._pace = pace
        self._random = random.Random(seed)

    async def reply(
        self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> AsyncGenerator[Delta, None]:
        """Streams the answer; tools are not called."""
        script = _script()
        answer = answer_to([content_text(m.get("content")) for m in messages if m.get("role") == "user"])
        wait_ms = float(script["first_token_ms"])
        for token in tokens_of(answer):
            await asyncio.sleep(wait_ms / 1000 * self._pace)
            yield TextDelta(token)
            wait_ms = script["token_ms"] * self._random.uniform(0.5, 1.8)
        yield End("stop")


def answer_to(said: Sequence[str]) -> str:
    """The scripted answer to the last of the user's messages; repeated questions get the next of the answers."""
    script = _script()
    last = said[-1] if said else ""
    language = "zh" if any(map(is_han, last)) else "en"
    intent = _intent(last)
    earlier = sum(1 for text in said[:-1] if _intent(text) is intent)
    number = _NUMBER.search(last)
    answers = intent if intent is not None else script["fallback"]
    choices = answers[language]
    if number is None and f"{language}_without_number" in answers:
        choices = answers[f"{language}_without_number"]
    answer = str(choices[earlier % len(choices)])
    return answer.replace("{number}", number.group() if number else "")


def tokens_of(text: str) -> list[str]:
    """The text cut about where a tokenizer of an LLM would; joined it is the text."""
    return _TOKEN.findall(text)


def _intent(text: str) -> dict[str, Any] | None:
    intents: list[dict[str, Any]] = _script()["intents"]
    best, most = None, 0
    for intent in intents:
        hits = len(intent["pattern"].findall(text)) * intent.get("weight", 1)
        if hits > most:
            best, most = intent, hits
    if best is None and _NUMBER.search(text):
        return next(intent for intent in intents if "en_without_number" in intent)
    return best


@lru_cache(maxsize=1)
def _script() -> dict[str, Any]:
    import yaml

    script: dict[str, Any] = yaml.safe_load(_SCRIPT.read_text(encoding="utf-8"))
    for intent in script["intents"]:
        intent["pattern"] = re.compile("|".join(_word_pattern(word) for word in intent["words"]), re.IGNORECASE)
    return script


def _word_pattern(word: str) -> str:
    if any(map(is_han, word)):
        return re.escape(word)
    ending = r"\w*" if word.endswith("*") else ""
    return r"\b" + re.escape(word.removesuffix("*")) + ending + r"\b"
