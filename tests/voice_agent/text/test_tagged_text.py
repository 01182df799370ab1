"""`inject_prompt`: the plan as tags in the text, in both dialects, and nothing of the text lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.types import Run
from voice_agent.errors import InputError
from voice_agent.text.plan import ProsodyConfig
from voice_agent.text.speakable import Cleaner
from voice_agent.text.tagged_text import inject_prompt
from voice_agent.text.tags import TagReader

URGENT = "The pan is on fire, get out!"


def test_writes_the_plan_around_each_sentence() -> None:
    assert inject_prompt(URGENT) == f"[speed_1.2]{URGENT}[break_100]"
    assert (
        inject_prompt("着火了，快跑！会议室在三楼。")
        == "[speed_1.2]着火了，快跑！[break_100][speed_1.05]会议室在三楼。[break_250]"
    )
    assert inject_prompt("It is. Is it?") == "[speed_1]It is.[break_250] [speed_1]Is it?[break_290]"


def test_takes_a_label_and_a_dialect() -> None:
    assert inject_prompt("会议室在三楼。", "紧急", dialect="chattts") == "[speed_8]会议室在三楼。[uv_break]"
    with pytest.raises(InputError, match="urgent, positive"):
        inject_prompt("Hello.", "purple")


def test_tags_of_the_text_win() -> None:
    assert inject_prompt(f"[speed_0.8]{URGENT}[break_700]") == f"[speed_0.8]{URGENT}[break_700]"
    assert inject_prompt(f"{URGENT}[break_4000][break_4000]") == f"[speed_1.2]{URGENT}[break_5000]"
    assert inject_prompt("It [volume_0.5]is.") == "[speed_1]It [volume_0.5]is.[break_250]"


def test_wishes_count() -> None:
    assert inject_prompt("It is.", config=ProsodyConfig(speed=1.25)) == "[speed_1.25]It is.[break_200]"


@pytest.mark.parametrize("text", ["", "   \n", "\x00", "```\ncode\n```", "🎉"])
def test_text_without_words(text: str) -> None:
    assert inject_prompt(text) == ""


def test_markup_goes_and_a_list_item_is_known() -> None:
    written = inject_prompt("**Buy** `milk`:\n\n- two bottles\n- one loaf")
    assert written.startswith("[speed_1]Buy milk:[break_250]")
    assert "[speed_1.06]two bottles[break_160]" in written


def test_emoji_are_heard() -> None:
    assert inject_prompt("See you tonight 🎉.").startswith("[speed_1.05]See you tonight.")


def spoken(text: str) -> str:
    reader, cleaner = TagReader(), Cleaner()
    items = [clean for item in reader.feed(text) + reader.flush() for clean in cleaner.feed(item)] + cleaner.flush()
    return "".join("".join(item.text for item in items if isinstance(item, Run)).split())


@given(
    st.lists(
        st.sampled_from(
            [
                "Stop! ",
                "Sorry. ",
                "It is so.",
                " Is it?",
                "着火了！",
                "好的。",
                "x[0]",
                "\n\n- a\n",
                "[break_9]",
                "5 < 6 ",
            ]
        ),
        max_size=8,
    )
)
def test_nothing_of_the_text_is_lost(parts: list[str]) -> None:
    text = "".join(parts)
    assert spoken(inject_prompt(text)) == spoken(text)
