"""How fast the text stages are: tag reader, cleaner and splitter, each alone and all together, on one core.

    python -m benchmarks.text_stages [--rounds 9]

Text is fed four characters at a time (as tokens come) and in pieces of 1000. "answers" are what an assistant writes
(prose, some emphasis, a list, a link), "prose" has no markup, "markup" is as dense as it gets. The rounds alternate
between all rows, and the median of the processor time counts. A table for people, then one JSON line.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable

from benchmarks.measure import Row, median, one_core, report
from voice_agent.text.pieces import Item, Piece
from voice_agent.text.sentences import SentenceSplitter
from voice_agent.text.speakable import Cleaner
from voice_agent.text.tags import TagReader

CHARS = 60_000
SIZES = (4, 1000)
TEXTS = {
    "answers en": (
        "Yes, you can change the delivery address as long as the parcel has not left our warehouse yet. I have looked "
        "at your order, and it is still being packed, so we are just in time.\n\n"
        "To change it, open **My orders** in the app, choose the order from last Tuesday, and tap on *Edit address*. "
        "You will be asked to confirm the new one with a code that we send to your phone.\n\n"
        "- The change is free of charge.\n- It takes about 15 minutes until you see it in the app.\n\n"
        "[speed_0.9]If anything goes wrong, please read [our help page](https://example.com/help) or simply ask me "
        "again. I would be happy to stay with you until it is done. Is there anything else that I can do? 😊\n\n"
    ),
    "answers zh": (
        "可以的，只要包裹还没有离开我们的仓库，您就可以修改收货地址。"
        "我刚刚查看了您的订单，目前还在打包，所以现在修改正好来得及。\n\n"
        "请打开手机应用，进入**我的订单**，选择上周二的那个订单，然后点击“修改地址”。"
        "系统会向您的手机发送一个验证码，输入以后就可以确认新的地址了。\n\n"
        "- 修改地址是免费的。\n- 大约15分钟以后，您就可以在应用里看到新的地址。\n\n"
        "[speed_0.9]如果遇到任何问题，您可以查看[帮助页面](https://example.com/help)，也可以直接再问我。"
        "请问今天还有什么可以帮您的吗？😊\n\n"
    ),
    "prose en": "It was a quiet morning in the village, and people were walking to the market to buy bread and milk. ",
    "markup en": (
        "# A *b*\n\n- **c** `d` [e](http://f)\n1. g &amp; h 😊 <b>i</b> [1]\n\n| j | k |\n|---|---|\n\n```\nl\n```\n"
    ),
}


def read_tags(chunks: Iterable[str]) -> list[Item]:
    reader = TagReader()
    return [item for chunk in chunks for item in reader.feed(chunk)] + reader.flush()


def clean(items: Iterable[Item]) -> list[Item]:
    cleaner = Cleaner()
    return [cleaned for item in items for cleaned in cleaner.feed(item)] + cleaner.flush()


def split(items: Iterable[Item]) -> list[Piece]:
    splitter = SentenceSplitter()
    return [piece for item in items for piece in splitter.feed(item)] + splitter.flush()


def together(chunks: Iterable[str]) -> list[Piece]:
    """The three stages in one line, chunk by chunk, as a turn runs them."""
    reader, cleaner, splitter = TagReader(), Cleaner(), SentenceSplitter()
    pieces: list[Piece] = []
    for chunk in chunks:
        for item in reader.feed(chunk):
            for cleaned in cleaner.feed(item):
                pieces += splitter.feed(cleaned)
    return pieces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="how often each row is measured")
    options = parser.parse_args()
    one_core()
    runs: list[tuple[str, int, int, dict[str, Callable[[], object]]]] = []
    for name, text in TEXTS.items():
        text = text * (CHARS // len(text))
        for size in SIZES:
            chunks = [text[start : start + size] for start in range(0, len(text), size)]
            tagged = read_tags(chunks)
            cleaned = clean(tagged)
            stages: dict[str, Callable[[], object]] = {
                "tags": lambda chunks=chunks: read_tags(chunks),  # type: ignore[misc]
                "cleaner": lambda tagged=tagged: clean(tagged),  # type: ignore[misc]
                "splitter": lambda cleaned=cleaned: split(cleaned),  # type: ignore[misc]
                "together": lambda chunks=chunks: together(chunks),  # type: ignore[misc]
            }
            runs.append((name, size, len(text), stages))
    times: dict[tuple[str, int, str], list[float]] = {}
    for _ in range(options.rounds):
        for name, size, _, stages in runs:
            for stage, run in stages.items():
                start_s = time.process_time()
                run()
                times.setdefault((name, size, stage), []).append(time.process_time() - start_s)
    rows: list[Row] = [
        {"text": name, "chars a feed": size}
        | {f"{stage} chars/s": int(chars / median(times[name, size, stage]) / 1000) * 1000 for stage in stages}
        for name, size, chars, stages in runs
    ]
    report("text_stages", rows, threads=1, rounds=options.rounds)


if __name__ == "__main__":
    main()
