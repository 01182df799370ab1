"""Prompts files: strict reading, clear errors, own files over the packaged ones, prompts that our tag reader reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from tts_engine.types import Language, Run, Tag
from voice_agent import prompts
from voice_agent.errors import ConfigError
from voice_agent.prompts import Mode, Section, load, system_prompt
from voice_agent.text.lexicon import read_lexicon
from voice_agent.text.plan import ProsodyConfig
from voice_agent.text.prosody import ProsodyPlanner
from voice_agent.text.rules import read_rules
from voice_agent.text.sentiment import SentimentReader
from voice_agent.text.tags import TagReader

PROMPTS = Path(__file__).parents[2] / "prompts"


def edited(tmp_path: Path, name: str, before: str, after: str) -> Path:
    """A directory with one packaged file in which a text is replaced."""
    text = (PROMPTS / name).read_text(encoding="utf-8")
    assert before in text
    (tmp_path / name).write_text(text.replace(before, after, 1), encoding="utf-8")
    return tmp_path


class TestErrors:
    @pytest.mark.parametrize(
        ("before", "after", "said"),
        [
            ("step: 0.15", "stepp: 0.15", ["speed.stepp: unknown key", "least, most, normal, step"]),
            ("step: 0.15", "step: fast", ["speed.step", "a number from 0 to 2", "'fast'"]),
            ("step: 0.15", "step: true", ["speed.step", "a number from 0 to 2"]),
            ("step: 0.15", "step: .nan", ["speed.step", "a number from 0 to 2"]),
            ("least: 0.75", "least: 1.5", ["speed.least", "above most"]),
            ("normal: 250", "normal: 9000", ["break_ms.normal", "from 0 to 1200"]),
            (
                "{mood: urgent}",
                "{mood: hasty}",
                ["rules[7].when.mood", "urgent, positive, negative, apology, neutral", "'hasty'"],
            ),
            ("{kind: list_item}", "{kinds: list_item}", ["rules[1].when.kinds: unknown key", "ends, kind, long, mood"]),
            ("{long: true}", "{long: 1}", ["rules[0].when.long", "true or false"]),
            ("speed: 1.2, break_ms: 100", "speed: 12, break_ms: 100", ["rules[7].speed", "from 0.5 to 2"]),
            ("name: urgent", "title: urgent", ["rules[7].title: unknown key"]),
            ("name: urgent, ", "", ["rules[7].name: missing"]),
            ("rules:\n", "rules: none\nrule:\n", ["rule: unknown key", "rules"]),
            ("break_ms: {normal: 250, most: 1200}", "", ["break_ms.most: missing", "a number"]),
            ("step: 0.15", "step: 0.15, step: 0.2", ["line 6", "'step' stands twice"]),
            ("step: 0.15}", "step: 0.15", ["not valid YAML", "line"]),
        ],
    )
    def test_name_the_file_the_key_and_what_is_allowed(self, tmp_path: Path, before: str, after: str, said: list[str]) -> None:
        directory = edited(tmp_path, "prosody.yaml", before, after)
        with pytest.raises(ConfigError) as caught:
            ProsodyPlanner(ProsodyConfig(directory=directory))
        for part in ["prosody.yaml", *said]:
            assert part in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "before", "after", "said"),
        [
            ("sentiment_en.yaml", "positive:\n", "positiv:\n", ["positiv: unknown key", "positive"]),
            ("sentiment_en.yaml", "  weak: >", "  week: >", ["urgent.week: unknown key", "strong, weak"]),
            ("sentiment_zh.yaml", "mention: >", "mention: 4\nneutral: >", ["line 4", "'neutral' stands twice"]),
            ("sentiment_zh.yaml", "softeners: ", "softeners: 4 #", ["softeners", "words with commas"]),
            ("sentiment_zh.yaml", "  own: ", "  own: 救命, ", ["apology.own: '救命' stands under urgent"]),
            ("sentiment.yaml", "threshold: 0.9", "threshold: high", ["threshold", "a number"]),
            ("sentiment.yaml", "  neutral: none", "  bored: none", ["labels.bored: unknown key"]),
        ],
    )
    def test_of_the_lexicons(self, tmp_path: Path, name: str, before: str, after: str, said: list[str]) -> None:
        directory = edited(tmp_path, name, before, after)
        with pytest.raises(ConfigError) as caught:
            SentimentReader(directory)
        for part in [name, *said]:
            assert part in str(caught.value)

    @pytest.mark.parametrize("content", [b"", b"- a\n- b\n", b"just words", b"\xff\xfe", b"{1: 2}", b"a: \x00"])
    def test_of_a_file_that_is_no_mapping(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "prosody.yaml").write_bytes(content)
        with pytest.raises(ConfigError, match=r"prosody\.yaml"):
            ProsodyPlanner(ProsodyConfig(directory=tmp_path))

    def test_of_a_missing_directory_or_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="no such directory"):
            ProsodyPlanner(ProsodyConfig(directory=tmp_path / "nowhere"))
        with pytest.raises(ConfigError, match=r"absent\.yaml: not found"):
            load("absent.yaml", dict)  # type: ignore[arg-type]


class TestOwnFiles:
    def test_hide_single_ones_and_are_read_again_when_they_change(self, tmp_path: Path) -> None:
        directory = edited(tmp_path, "prosody.yaml", "speed: 1.2, break_ms: 100", "speed: 1.3, break_ms: 50")
        assert ProsodyPlanner(ProsodyConfig(directory=directory)).plan("Get out now!").speed == 1.3
        assert ProsodyPlanner().plan("Get out now!").speed == 1.2
        edited(tmp_path, "prosody.yaml", "speed: 1.2, break_ms: 100", "speed: 1.25, break_ms: 50")
        assert ProsodyPlanner(ProsodyConfig(directory=str(directory))).plan("Get out now!").speed == 1.25

    def test_take_words_as_text_or_as_a_list(self, tmp_path: Path) -> None:
        (tmp_path / "sentiment_en.yaml").write_text("positive:\n  strong: [zounds, 'gad~ zooks']\nnegators: not\n", "utf-8")
        reader = SentimentReader(tmp_path)
        assert reader.read("Zounds!").label == "positive"
        assert reader.read("Gads zooks!").label == "positive"
        assert reader.read("Not zounds!").label == "negative"
        assert reader.read("Wonderful!").label == "neutral"


class TestSystemPrompt:
    @pytest.mark.parametrize("language", get_args(Language))
    @pytest.mark.parametrize("mode", get_args(Mode))
    def test_teaches_only_tags_that_we_read(self, language: Language, mode: Mode) -> None:
        prompt = system_prompt(language, mode)
        reader = TagReader()
        items = reader.feed(prompt) + reader.flush()
        assert not reader.take_warnings()
        names = {item.name for item in items if isinstance(item, Tag)}
        assert names == (set() if mode == "rules" else {"speed", "break", "pitch", "volume"})
        assert "[" not in "".join(item.text for item in items if isinstance(item, Run))
        assert "{" not in prompt
        assert ("。" in prompt) == (language == "zh")

    def test_differs_by_mode(self) -> None:
        assert len({system_prompt(language, mode) for language in get_args(Language) for mode in get_args(Mode)}) == 6

    def test_can_be_replaced(self, tmp_path: Path) -> None:
        directory = edited(tmp_path, "system.yaml", "Write the way people talk.", "Talk like a pirate.")
        assert "pirate" in system_prompt("en", "rules", directory)
        assert "pirate" not in system_prompt("en", "rules")
        edited(tmp_path, "system.yaml", "  only_tags: |", "  only_tag: |")
        with pytest.raises(ConfigError, match=r"system\.yaml: en\.only_tag: unknown key; allowed: both, only_tags"):
            system_prompt("en", "tags", directory)

    def test_unknown_language_or_mode(self) -> None:
        with pytest.raises(ConfigError, match="en, zh"):
            system_prompt("fr")  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="rules, tags, both"):
            system_prompt("en", "auto")  # type: ignore[arg-type]


def test_the_packaged_place_goes_before_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = tmp_path / "_prompts"
    shutil.copytree(PROMPTS, packaged)
    edited(packaged, "tags.yaml", "a pause of that many milliseconds", "a rest")
    monkeypatch.setattr(prompts, "_PACKAGED", packaged)
    assert "a rest" in system_prompt("en", "tags")


def test_sections_tell_where_they_are() -> None:
    section = Section({"a": {"b": [1, {}]}}, "x.yaml")
    with pytest.raises(ConfigError, match=r"x\.yaml: a\.b\[0\]: expected a mapping"):
        section.section("a").sections("b", ("c",))


def test_importing_reads_nothing() -> None:
    code = "import sys, voice_agent.text.prosody; sys.exit(bool(sys.modules['voice_agent.prompts']._built))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_file_is_read() -> None:
    assert {path.name for path in PROMPTS.iterdir()} == {
        "customer_service.yaml",  # of examples/customer_service.py, which has its test
        *("prosody.yaml", "sentiment.yaml", "sentiment_en.yaml", "sentiment_zh.yaml", "system.yaml", "tags.yaml"),
    }
    assert load("prosody.yaml", read_rules) is load("prosody.yaml", read_rules)
    assert load("sentiment_en.yaml", read_lexicon) is load("sentiment_en.yaml", read_lexicon)
