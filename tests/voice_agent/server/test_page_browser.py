"""The page in headless Chromium: talking, typing, interrupting, by mouse and by keyboard, in both languages."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import recogniser
from tests.edits import edits
from tests.recogniser import english_words, transcribe
from tests.voice_agent.scripted import ScriptedModel
from tests.voice_agent.server.browser import chromium, page_of, picture, record, recorded, require, violations, when
from tests.voice_agent.server.humming import HummingEngine
from tests.voice_agent.server.serving import serving, until
from voice_agent.llm.demo import DemoChat, answer_to
from voice_agent.server.app import create_app
from voice_agent.server.config import KeySettings, RecognizerSettings, ServerConfig
from voice_agent.testing.fake_engine import LETTER_SAMPLES

pytestmark = pytest.mark.peer

QUESTION = "When are you open on Sunday?"
LONG = ["Here is the first sentence, which is short. ", "Then comes a second one that goes on for a while. "] * 5
DEAF = RecognizerSettings(kind="none")


@asynccontextmanager
async def server(model: Any, engine: Any = None, **config: Any) -> AsyncGenerator[tuple[str, Any], None]:
    config.setdefault("recognizer", DEAF)
    app = create_app(ServerConfig(**config), engine=engine or HummingEngine(cost=0.01, level=0.5), model=model)
    async with serving(app) as address:
        yield f"http://{address}/", app.state.service


def spoken_question(path: Path) -> None:
    """A microphone that says the question after a second and is quiet then."""
    if shutil.which("flite") is None or shutil.which("sox") is None:
        pytest.skip("no flite or sox on this machine, which say the question")
    raw = path.with_suffix(".raw.wav")
    subprocess.run(["flite", "-voice", "slt", "-t", QUESTION, "-o", raw], check=True)
    subprocess.run(["sox", raw, "-r", "48000", "-c", "1", path, "pad", "1", "60"], check=True)


async def text_of(page: Any, selector: str) -> str:
    return " ".join((await page.text_content(selector) or "").split())


async def heard_words(page: Any) -> str:
    """The words that have taken on colour."""
    return " ".join(await page.eval_on_selector_all(".word.heard", "words => words.map(word => word.textContent)"))


@pytest.mark.slow
async def test_a_spoken_question_is_answered_aloud(tmp_path):
    """Microphone, recogniser, answer, voice, network and browser together: what sounds in the page is what was written."""
    require()
    recogniser.require()
    spoken_question(tmp_path / "question.wav")
    answer = answer_to([QUESTION])
    from tts_engine.scheduler import Scheduler

    engine = Scheduler()
    engine.start()
    try:
        async with (
            server(DemoChat(), engine, recognizer=RecognizerSettings()) as (url, service),
            chromium(tmp_path / "question.wav") as browser,
            page_of(browser, url) as page,
        ):
            await until(lambda: service.ready, limit_s=60)
            await service.recognizer.ready()
            await page.click("#talk-button")
            await page.wait_for_selector("#state[data-state=listening]", timeout=30_000)
            await record(page)
            await page.wait_for_selector(".turn.user:not(.partial)", timeout=40_000)
            assert english_words(await text_of(page, ".turn.user p")) == english_words(QUESTION)
            await page.wait_for_selector("#state[data-state=speaking]", timeout=30_000)
            await picture(page, "talk-speaking")
            await page.wait_for_selector("#state[data-state=listening]", timeout=60_000)
            sound = await recorded(page)
            assert await heard_words(page) == answer
            assert await page.get_attribute("#mic-meter", "aria-valuenow") is not None
            await picture(page, "talk-answered")
            await page.click("#hang-up")
            await until(lambda: not service.streams.live)
            assert await text_of(page, "#state") == "Ready"
    finally:
        engine.close()
    heard = english_words(transcribe(sound, "en", 48_000))
    expected = english_words(answer)
    assert edits(heard, expected) / len(expected) <= 0.15, f"heard {heard}"


async def test_typing_and_interrupting_by_keyboard():
    require()
    model = ScriptedModel(LONG)
    async with server(model) as (url, service), chromium() as browser, page_of(browser, url) as page:
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.className") == "skip"
        await page.fill("#question", "Go on, please.")
        await page.press("#question", "Enter")
        await when(page, "document.querySelectorAll('.word.heard').length >= 4")
        assert await text_of(page, "#state") == "Speaking"
        assert await page.is_enabled("#interrupt")
        await picture(page, "talk-captions")
        await page.keyboard.press("Escape")
        await page.wait_for_selector(".turn.cut")
        await page.wait_for_selector("#state[data-state=idle]")
        heard = await heard_words(page)
        await page.fill("#question", "And what did I hear?")
        await page.press("#question", "Enter")
        await when(page, "document.querySelectorAll('.turn.agent').length === 2")
        kept = [message["content"] for message in model.asked[-1] if message["role"] == "assistant"]
        assert await page.locator(".turn.user").count() == 2
        assert kept == [heard]  # the words in colour are what the conversation remembers
        assert 0 < len(heard) < len("".join(LONG))
        assert await page.locator("#bars .row").count() >= 1
        assert await text_of(page, "#headline") != "–"
        await picture(page, "talk-interrupted")
        await page.click("#interrupt")
        await page.wait_for_selector("#state[data-state=idle]")
        await page.click("#hang-up")
        await until(lambda: not service.streams.live)


async def test_what_counts_as_heard_has_sounded_in_the_page():
    """The words in colour after an interruption, against a recording of what the page played until it was silent."""
    require()
    async with server(ScriptedModel(LONG)) as (url, _), chromium() as browser, page_of(browser, url) as page:
        for words in (2, 9):  # the first turn connects, and lets the page report its delay
            if words == 9:
                await page.wait_for_timeout(1500)
                await record(page)
            await page.fill("#question", "Go on, please.")
            await page.press("#question", "Enter")
            last = "[...document.querySelectorAll('.turn.agent')].at(-1)"
            heard = f"({last}?.querySelectorAll('.word.heard').length ?? 0)"
            await when(
                page, f"document.querySelectorAll('.turn.user').length === {1 if words == 2 else 2} && {heard} >= {words}"
            )
            await page.keyboard.press("Escape")
            await page.wait_for_selector("#state[data-state=idle]")
        await page.wait_for_timeout(1000)
        sound = await recorded(page)
        text = await page.evaluate(f"[...{last}.querySelectorAll('.word.heard')].map((word) => word.textContent).join(' ')")
    frames = np.abs(sound[: len(sound) // 480 * 480].reshape(-1, 480)).max(axis=1)
    sounded_s = np.count_nonzero(frames > 0.1) * 0.01
    believed_s = sum(map(str.isalpha, text)) * LETTER_SAMPLES / 24_000
    assert sounded_s == pytest.approx(believed_s, abs=0.5), text  # half a long word, and the frames' edges


async def test_a_closed_page_ends_its_session():
    require()
    async with server(ScriptedModel(LONG)) as (url, service), chromium() as browser:
        async with page_of(browser, url) as page:
            await page.fill("#question", "Go on.")
            await page.press("#question", "Enter")
            await page.wait_for_selector(".word.heard", timeout=30_000)
            assert len(service.streams.live) == 1
        await until(lambda: not service.streams.live)


async def test_a_server_without_a_recogniser_says_so():
    require()
    async with server(ScriptedModel(LONG)) as (url, _), chromium() as browser, page_of(browser, url) as page:
        await page.click("#talk-button")
        await page.wait_for_selector("#notice:not([hidden])", timeout=30_000)
        assert "type instead" in await text_of(page, "#notice")
        assert await page.get_attribute("#state", "data-state") == "deaf"
        assert await page.get_attribute("#talk-button", "aria-pressed") == "true"
        await page.click("#talk-button")
        assert await page.get_attribute("#talk-button", "aria-pressed") == "false"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("desktop-light-en", {"color_scheme": "light"}),
        ("desktop-dark-zh", {"color_scheme": "dark", "locale": "zh-CN"}),
        ("phone-light-zh", {"color_scheme": "light", "locale": "zh-CN", "phone": True}),
        ("phone-dark-en", {"color_scheme": "dark", "phone": True}),
    ],
)
async def test_every_tab_is_accessible_and_fits(name, options):
    require()
    pytest.importorskip("axe_playwright_python", reason="no axe: pip install axe-playwright-python")
    async with server(DemoChat()) as (url, _), chromium() as browser, page_of(browser, url, **options) as page:

        async def look(tab: str) -> None:
            await page.wait_for_timeout(400)  # colours fade in
            assert not await violations(page)
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await picture(page, f"{name}-{tab}", whole=tab != "talk")

        assert await page.get_attribute("html", "lang") == ("zh-CN" if "zh" in name else "en")
        await look("welcome")
        await page.click("#examples button >> nth=1")
        await when(page, "document.querySelectorAll('.word.heard').length >= 6")
        await look("talk")
        await page.focus("#tab-talk")
        await page.keyboard.press("ArrowRight")
        assert await page.evaluate("document.activeElement.id") == "tab-playground"
        await page.click("#play")
        await page.wait_for_selector("#play-download:not([hidden])", timeout=30_000)
        await look("playground")
        await page.press("#tab-playground", "ArrowRight")
        await page.wait_for_selector("#streams th[scope=row]")
        await look("admin")
        before = await text_of(page, "#tab-talk")
        await page.click("#language")
        assert await text_of(page, "#tab-talk") != before
        await page.click("#theme")
        await page.wait_for_timeout(400)
        assert not await violations(page)


async def test_the_playground_plays_every_format():
    require()
    async with server(DemoChat()) as (url, _), chromium() as browser, page_of(browser, url) as page:
        await page.click("#tab-playground")
        for format in ("pcm", "wav", "mp3", "opus", "flac", "aac"):
            await page.select_option("#play-format", format)
            await page.click("#play")
            await page.wait_for_selector("#play-download:not([hidden])", timeout=30_000)
            await when(page, "document.querySelector('#fact-duration').textContent !== '–'")
            assert f"speech.{format}" in await text_of(page, "#play-curl")
            duration_s = float((await text_of(page, "#fact-duration")).removesuffix(" s"))
            assert duration_s > 2, format
            assert "ms" in await text_of(page, "#fact-first")
            async with page.expect_download() as download:
                await page.click("#play-download")
            assert (await download.value).suggested_filename == f"speech.{format}"
        await page.click("#play-stop")


async def test_a_server_with_keys_asks_for_one_and_the_page_keeps_it_for_the_tab_only():
    require()
    key = "k" * 32
    async with server(ScriptedModel(LONG), keys=(KeySettings("page", key),)) as (url, _), chromium() as browser:  # noqa: SIM117
        async with page_of(browser, url) as page:
            await page.wait_for_selector("dialog[open]")
            assert not await violations(page)
            await picture(page, "key")
            await page.fill("#key-field", key)
            await page.press("#key-field", "Enter")
            await when(page, "document.querySelector('#voice').options.length > 0")
            await page.fill("#question", "Go on.")
            await page.press("#question", "Enter")
            await page.wait_for_selector(".word.heard", timeout=30_000)
            stored = await page.evaluate(
                "[JSON.stringify({...localStorage}), JSON.stringify({...sessionStorage}), document.cookie]"
            )
            assert key not in stored[0] + stored[2]
            assert key in stored[1]
            assert all("401" in line for line in page.said)  # the browser tells of the refusal before the key
            page.said.clear()


NO_MICROPHONE = """(name) => {
    navigator.mediaDevices.getUserMedia = async () => { throw new DOMException("raw words of the browser", name); };
}"""


@pytest.mark.parametrize(("name", "told"), [("NotAllowedError", "allow it"), ("NotFoundError", "plug one in")])
async def test_a_microphone_that_cannot_be_had_is_told_with_what_to_do(name: str, told: str) -> None:
    require()
    async with server(ScriptedModel(LONG)) as (url, _), chromium() as browser, page_of(browser, url) as page:
        await page.evaluate(NO_MICROPHONE, name)
        await page.click("#talk-button")
        await page.wait_for_selector("#notice:not([hidden])")
        assert told in await text_of(page, "#notice")
        assert "raw words" not in await text_of(page, "#notice")
        assert await page.get_attribute("#talk-button", "aria-pressed") == "false"
        await page.fill("#question", "Go on.")  # and typing works as before
        await page.press("#question", "Enter")
        await page.wait_for_selector(".word.heard", timeout=30_000)


async def test_a_microphone_that_comes_after_hanging_up_is_turned_off() -> None:
    """The browser asks for leave; meanwhile the user ends the conversation; then the browser gives the microphone."""
    require()
    async with server(ScriptedModel(LONG)) as (url, service), chromium() as browser, page_of(browser, url) as page:
        await page.evaluate(
            """() => {
                const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
                const allowed = new Promise((resolve) => (window.allow = resolve));
                navigator.mediaDevices.getUserMedia = async (wanted) => {
                    window.asked = true;
                    await allowed;
                    return (window.given = await ask(wanted));
                };
            }"""
        )
        await page.click("#talk-button")
        await when(page, "window.asked && !document.querySelector('#hang-up').hidden")
        await page.click("#hang-up")
        await until(lambda: not service.streams.live)
        await page.evaluate("allow()")
        await when(page, "window.given?.getTracks().every((track) => track.readyState === 'ended')")
        assert await page.get_attribute("#talk-button", "aria-pressed") == "false"
        assert await page.get_attribute("#state", "data-state") == "ready"


async def test_a_server_that_no_path_leads_to_is_given_up_with_what_to_do() -> None:
    require()
    async with server(ScriptedModel(LONG)) as (url, service), chromium() as browser, page_of(browser, url) as page:

        async def without_paths(route: Any) -> None:
            offer = (route.request.post_data or "").replace("a=candidate", "a=nothing")
            response = await route.fetch(post_data=offer)
            answer = (await response.text()).replace("a=candidate", "a=nothing")
            await route.fulfill(status=response.status, content_type="application/json", body=answer)

        await page.route("**/rtc/offer", without_paths)
        await page.evaluate("() => { const wait = setTimeout; window.setTimeout = (call, ms) => wait(call, ms / 10); }")
        await page.fill("#question", "Go on.")
        await page.press("#question", "Enter")
        await page.wait_for_selector("#state[data-state=failed]", timeout=30_000)
        assert "TURN" in await text_of(page, "#notice")
        await until(lambda: not service.streams.live)


@pytest.mark.parametrize(
    ("wrong", "locale", "told"),
    [
        ("delete window.RTCPeerConnection", "en-US", "no WebRTC"),
        ("window.fetch = async () => { throw new TypeError('Failed to fetch'); }", "en-US", "does not answer"),
        ("window.fetch = async () => { throw new TypeError('Failed to fetch'); }", "zh-CN", "服务器没有响应"),
    ],
)
async def test_a_connection_that_fails_is_told_with_what_to_do(wrong: str, locale: str, told: str) -> None:
    require()
    async with server(ScriptedModel(LONG)) as (url, _), chromium() as browser:  # noqa: SIM117
        async with page_of(browser, url, locale=locale) as page:
            await page.evaluate(f"() => {{ {wrong} }}")
            await page.fill("#question", "Go on.")
            await page.press("#question", "Enter")
            await page.wait_for_selector("#notice:not([hidden])")
            assert told in await text_of(page, "#notice")
            assert await page.get_attribute("#state", "data-state") == "failed"
