"""A headless Chromium for tests of the page: what its console says is kept, its pictures go to out/page."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PICTURES = Path(__file__).parents[3] / "out" / "page"
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
]


def require() -> str:
    """Chromium's path; skips the test, with the reason, where there is none."""
    pytest.importorskip("playwright", reason="no playwright: pip install playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium on this machine")
    return path


@asynccontextmanager
async def chromium(microphone: Path | None = None) -> AsyncGenerator[Any, None]:
    """A browser; ``microphone``: a WAV file that it hears once, from when the microphone is turned on."""
    path = require()
    from playwright.async_api import async_playwright

    flags = [*_FLAGS, *([f"--use-file-for-fake-audio-capture={microphone}%noloop"] if microphone else [])]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=flags)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def page_of(browser: Any, url: str, *, phone: bool = False, **options: Any) -> AsyncGenerator[Any, None]:
    """The page, loaded. At the end its console must have said nothing."""
    size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 800}
    options = {"viewport": size, "device_scale_factor": 2 if phone else 1, "has_touch": phone, "locale": "en-US", **options}
    context = await browser.new_context(**options)
    await context.grant_permissions(["microphone"])
    page = await context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    try:
        await page.goto(url)
        await when(page, "document.querySelector('#voice').options.length || document.querySelector('dialog').open")
        page.said = said
        yield page
        assert not said, said
    finally:
        await context.close()


async def when(page: Any, expression: str, limit_s: float = 30.0) -> None:
    """Waits until the expression is true; playwright's own way needs eval, which the page's policy forbids."""
    async with asyncio.timeout(limit_s):
        while not await page.evaluate(expression):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def picture(page: Any, name: str, *, whole: bool = False) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=PICTURES / f"{name}.png", full_page=whole)


async def record(page: Any) -> None:
    """Records what the page plays, from now on."""
    await page.evaluate(
        """() => {
            const recorder = new MediaRecorder(document.querySelector("#speech").srcObject, { audioBitsPerSecond: 96000 });
            window.recorded = new Promise((resolve) => {
                const parts = [];
                recorder.ondataavailable = ({ data }) => parts.push(data);
                recorder.onstop = async () => {
                    const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
                    let text = "";
                    for (const byte of bytes) text += String.fromCharCode(byte);
                    resolve(btoa(text));
                };
            });
            window.stopRecording = () => recorder.stop();
            recorder.start(250);
        }"""
    )


async def recorded(page: Any) -> np.ndarray:
    """What was recorded, mono float32 at 48 kHz."""
    import av

    data = base64.b64decode(await page.evaluate("() => { stopRecording(); return recorded; }"))
    parts = []
    resampler = av.AudioResampler(format="flt", layout="mono", rate=48_000)
    with av.open(io.BytesIO(data)) as file, contextlib.suppress(av.error.EOFError):
        for frame in file.decode(audio=0):
            parts += [resampled.to_ndarray().reshape(-1) for resampled in resampler.resample(frame)]
    return np.concatenate(parts)


async def violations(page: Any) -> str:
    """What axe-core has to say against the page as it is."""
    from axe_playwright_python.async_playwright import Axe

    results = await Axe().run(page)
    return results.generate_report() if results.violations_count else ""
