"""What a recogniser says when nobody has spoken is not believed; what people say is."""

from __future__ import annotations

import numpy as np
import pytest

from voice_agent.ears.no_speech import LEAST_VOICED_S, Evidence, doubt, voiced_s

SURE = Evidence(no_speech=0.01, logprob=-0.2)
MADE_UP = (
    "Subtitles by the Amara.org community", "Thanks for watching!", "Thank you for watching.", "Transcribed by somebody",
    "Like and subscribe!", "[Music]", "(coughing)", "*sighs*", "♪♪", "...", "", "字幕by索兰娅", "字幕由Amara.org社区提供",
    "请不吝点赞 订阅 转发 打赏支持明镜与点点栏目", "請不吝點贊 訂閱 轉發", "感谢观看", "謝謝大家的收看",
    "词曲 李宗盛", "作词 李宗盛",
)  # fmt: skip
SAID = (
    "Stop.", "Thank you.", "You.", "Bye.", "Could you switch the subtitles on?", "I want to subscribe to the newsletter.",
    "Watch this, please.", "No, no, no, no, no.", "我想取消订阅。", "打开字幕", "这首歌是谁作曲的？",
    "谢谢", "好", "我看过李宗盛的演唱会",
    "One two three four five six seven eight nine zero one two three.", "对对对对对", "(555) 010-2233 is my number",
)  # fmt: skip


@pytest.mark.parametrize("text", MADE_UP)
def test_phrases_that_are_only_made_up_are_refused_however_sure(text: str) -> None:
    assert doubt(text, SURE)


@pytest.mark.parametrize("text", SAID)
def test_what_people_say_is_believed(text: str) -> None:
    assert doubt(text, SURE) == ""
    assert doubt(text, Evidence()) == ""


@pytest.mark.parametrize(
    ("text", "no_speech", "logprob", "believed"),
    [
        ("you", 0.9, -0.7, False),
        ("Where is my parcel?", 0.7, -0.1, False),
        ("Where is my parcel?", 0.5, -0.5, True),
        ("Where is my parcel?", 0.5, -1.3, False),
        ("Thank you.", 0.5, -0.9, False),
        ("Thank you.", 0.1, -0.9, True),
        ("Where is my parcel?", 0.1, -1.2, True),
        ("Where is my parcel?", 0.1, -2.0, False),
    ],
)
def test_the_less_sure_the_less_is_believed(text: str, no_speech: float, logprob: float, believed: bool) -> None:
    assert (doubt(text, Evidence(no_speech, logprob)) == "") is believed


def test_a_loop_is_refused() -> None:
    assert doubt("I'm not sure if I can" + 10 * " get a chance to", SURE)


def test_silence_has_no_voice_and_a_vowel_has() -> None:
    at = np.arange(16_000) / 16_000
    vowel = sum(np.sin(2 * np.pi * 120 * n * at) / n for n in range(1, 20)).astype(np.float32) * 0.1
    assert voiced_s(np.zeros(16_000, np.float32)) == 0
    assert voiced_s(vowel * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * at)).astype(np.float32)) > LEAST_VOICED_S
    assert voiced_s(np.zeros(100, np.float32)) == 0
