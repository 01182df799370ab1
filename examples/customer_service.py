"""A service agent on the phone: persona and FAQ from YAML, orders looked up in a database, the call kept in a file.

    python examples/customer_service.py [--out FILE.wav] ["Where is order 482913?" ...]

With OPENAI_API_KEY or OPENAI_BASE_URL it asks that server; without, scripted answers stand in for an LLM. The database is
a real SQLite file, which this example fills with a few orders.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent.parent))

from examples._common import chat_options, model, run
from voice_agent import Agent
from voice_agent.conversation import Conversation
from voice_agent.llm.deltas import Delta, TextDelta, ToolCall
from voice_agent.prompts import system_prompt
from voice_agent.tools import tool

PERSONA = Path(__file__).parent.parent / "prompts" / "customer_service.yaml"
ORDERS = [
    (482913, "a brass desk lamp", "left our warehouse yesterday and arrives tomorrow", "昨天已经出库，预计明天送到"),
    (482914, "two paper lanterns", "is being packed and leaves today", "正在打包，今天发出"),
    (482915, "a floor lamp", "came back to us because nobody was at home", "因为家中无人，已退回仓库"),
]  # fmt: skip
QUESTIONS = ["Hello! Where is my order 482913?", "Can I return it?", "请帮我查一下订单482914。", "谢谢，再见。"]
NUMBER = re.compile(r"\d{6}")


def fill(path: Path) -> None:
    """Makes the shop's database."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY, item TEXT, status_en TEXT, status_zh TEXT)")
        database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", ORDERS)
    database.close()


def order_tool(path: Path) -> Callable[..., str]:
    """The tool that looks orders up in the database at ``path``."""

    @tool(timeout_s=10)
    def order_status(number: int, language: str = "en") -> str:
        """Looks up where an order is.

        Args:
            number: The order number, six digits.
            language: "zh" for an answer in Chinese.
        """
        database = sqlite3.connect(path)
        row = database.execute("SELECT item, status_en, status_zh FROM orders WHERE number = ?", (number,)).fetchone()
        database.close()
        if row is None:
            return f"没有找到订单{number}。" if language == "zh" else f"There is no order {number}."
        return f"订单{number}{row[2]}。" if language == "zh" else f"Order {number}, {row[0]}, {row[1]}."

    return order_status


def system(language: str) -> str:
    """How to speak, who you are, what you know."""
    known = yaml.safe_load(PERSONA.read_text(encoding="utf-8"))[language]
    faq = "\n".join(f"- {entry['question']} {entry['answer']}" for entry in known["faq"])
    return f"{system_prompt('zh' if language == 'zh' else 'en')}\n\n{known['persona']}\n{faq}"


def stand_in(question: str) -> Delta | None:
    """What the scripted answers do: an order number is looked up, the FAQ answers what it can."""
    language = "zh" if re.search(r"[\u4e00-\u9fff]", question) else "en"
    if found := NUMBER.search(question):
        return ToolCall("order_status", {"number": int(found.group()), "language": language}, f"call_{found.group()}")
    known = yaml.safe_load(PERSONA.read_text(encoding="utf-8"))[language]["faq"]
    words = set(re.findall(r"\w{5,}", question.lower()))
    for entry in known:
        if words & set(re.findall(r"\w{5,}", entry["question"].lower())):
            return TextDelta(entry["answer"])
    return None


async def main(questions: list[str], out: str, llm: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shop, call = Path(folder) / "shop.db", Path(folder) / "call.db"
        fill(shop)
        async with model(name, llm, system("en"), stand_in) as chat:
            agent = Agent(chat, out, tools=[order_tool(shop)], conversation=Conversation.open(call))
            async with agent:
                for question in questions:
                    print(f"customer: {question}")
                    report = await agent.reply(question)
                    print(f"agent:    {report.heard}")
                print(f"({len(agent.conversation.messages)} messages kept)")


if __name__ == "__main__":
    chosen = chat_options(__doc__).parse_args()
    run(main(chosen.questions or QUESTIONS, chosen.out, chosen.llm, chosen.model))
