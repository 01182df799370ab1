"""The page's files and figures over HTTP."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx

from tests.voice_agent.server.serving import serving, until
from voice_agent.server import page
from voice_agent.server.app import create_app
from voice_agent.server.config import IceServer, KeySettings, RecognizerSettings, RtcSettings, ServerConfig
from voice_agent.testing.fake_engine import FakeSynthesizer

WEB = Path(page.__file__).with_name("web")
KEY = "k" * 32


def make_app(**config):
    return create_app(ServerConfig(recognizer=RecognizerSettings(kind="none"), **config), engine=FakeSynthesizer())


async def test_the_page_and_all_that_it_asks_for_are_there():
    async with serving(make_app()) as address, httpx.AsyncClient(base_url=f"http://{address}") as http:
        answer = await http.get("/")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        asked = set(re.findall(r'(?:src|href)="([\w.-]+)"', answer.text))
        for path in WEB.glob("*.js"):
            asked |= set(re.findall(r'from "\./([\w.-]+)"', path.read_text()))
        assert asked == {path.name for path in WEB.iterdir()} - {"index.html"}
        for name in asked:
            file = await http.get(f"/{name}")
            assert file.status_code == 200, name
            assert file.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in file.headers["content-security-policy"]
            again = await http.get(f"/{name}", headers={"if-none-match": file.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        for path in ("/../page.py", "/web/app.js", "/%2e%2e/page.py", "/app.js/", "/index.html", "/..%2fpage.py"):
            assert (await http.get(path, follow_redirects=False)).status_code in (404, 307)


async def test_the_policy_forbids_what_the_page_does_not_do():
    text = (WEB / "index.html").read_text()
    assert "unsafe" not in page.POLICY
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|<style", text)
    assert not re.search(r"https?://", text)
    for path in WEB.glob("*"):
        source = path.read_text()
        assert not re.search(r"\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write", source), path
        assert not re.search(r"""(?:src|href|url\(|from |fetch\()\s*["'(]?https?://""", source), path


async def test_both_languages_have_all_words():
    source = (WEB / "i18n.js").read_text()
    english, chinese = source.split("  zh: {")
    words = [set(re.findall(r"^    (\w+): ", part, re.MULTILINE)) for part in (english, chinese)]
    assert words[0] == words[1]
    used = set(re.findall(r'data-i18n(?:-label|-placeholder)?="(\w+)"', (WEB / "index.html").read_text()))
    assert used <= words[0]
    reasons = re.search(r"const REASONS = \{(.*?)\};", source, re.DOTALL)
    assert reasons is not None
    assert set(re.findall(r'"(\w+)"', reasons[1])) <= words[0]


async def test_who_needs_a_key_gets_no_ice_servers_and_no_figures_without_it():
    turn = IceServer(("turn:turn.example.com",), "user", "secret")
    app = make_app(keys=(KeySettings("page", KEY),), rtc=RtcSettings(ice_servers=(turn, IceServer(("stun:stun.example.com",)))))
    async with serving(app) as address, httpx.AsyncClient(base_url=f"http://{address}") as http:
        assert (await http.get("/")).status_code == 200
        for path in ("/page/config", "/admin/streams"):
            refused = await http.get(path)
            assert refused.status_code == 401
            assert "secret" not in refused.text
        headers = {"authorization": f"Bearer {KEY}"}
        config = (await http.get("/page/config", headers=headers)).json()
        assert config["ice_servers"] == [
            {"urls": ["turn:turn.example.com"], "username": "user", "credential": "secret"},
            {"urls": ["stun:stun.example.com"]},
        ]
        assert config["voices"][0]["id"] == "auto"
        figures = (await http.get("/admin/streams", headers=headers)).json()
        assert {"live", "free", "score", "underruns", "latency"} <= figures.keys()


class _SlowRecognizer:
    """One that takes for ever to load; ``told``: what became of it."""

    def __init__(self):
        self.told = []

    async def ready(self):
        self.told.append("loading")
        try:
            await asyncio.Event().wait()
        finally:
            self.told.append("stopped")

    async def aclose(self):
        self.told.append("closed")


async def test_what_a_page_has_the_server_load_ends_with_the_server():
    app = make_app()
    recognizer = app.state.service.recognizer = _SlowRecognizer()
    async with serving(app) as address, httpx.AsyncClient(base_url=f"http://{address}") as http:
        for _ in range(3):
            assert (await http.get("/page/config")).status_code == 200
        await until(lambda: recognizer.told)
    assert recognizer.told == ["loading", "stopped", "closed"]  # once, though three pages asked
