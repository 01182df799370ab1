"""An assistant for the desk: the time, notes, files, sums. Speak over it by pressing Enter: it stops at once.

    python examples/desktop_assistant.py [--out FILE.wav] ["What time is it?" ...]

Without questions on the command line it asks for them. It remembers what you heard of an answer that you stopped, not what
it meant to say. With OPENAI_API_KEY or OPENAI_BASE_URL it asks that server; without, scripted answers stand in.
"""

from __future__ import annotations

import ast
import asyncio
import datetime
import operator
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from examples._common import chat_options, model, run
from voice_agent import Agent
from voice_agent.captions import Caption, Event
from voice_agent.errors import SaylineError
from voice_agent.llm.deltas import Delta, ToolCall
from voice_agent.prompts import system_prompt
from voice_agent.tools import tool

NOTES: list[str] = []
OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


@tool
def what_time_is_it() -> str:
    """Tells the date and the time."""
    return f"It is {datetime.datetime.now():%H:%M on %A, %d %B %Y}."


@tool
def take_note(text: str) -> str:
    """Writes something down."""
    NOTES.append(text)
    return f"Noted: {text}."


@tool
def read_notes() -> str:
    """Reads all notes."""
    return " ".join(f"Note {number}: {note}." for number, note in enumerate(NOTES, 1)) or "There are no notes."


@tool
def list_files(folder: str = ".") -> str:
    """Tells what is in a folder.

    Args:
        folder: Its path; the current folder by default.
    """
    names = sorted(path.name for path in Path(folder).iterdir() if not path.name.startswith("."))
    return f"There are {len(names)} entries, such as {', '.join(names[:3])}."


@tool
def calculate(expression: str) -> str:
    """Works out a sum.

    Args:
        expression: Numbers with + - * / and brackets.
    """

    def value(node: ast.expr) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise ValueError(f"no number and no sum: {ast.unparse(node)}")

    try:
        return f"That makes {value(ast.parse(expression, mode='eval').body):g}."
    except (ArithmeticError, SyntaxError, ValueError):
        return f"I cannot work out {expression}."


TOOLS = [what_time_is_it, take_note, read_notes, list_files, calculate]
QUESTIONS = ["What time is it?", "Note: water the plants", "What is 17 * 3?", "Read my notes."]


def stand_in(question: str) -> Delta | None:
    """What the scripted answers do with a question."""
    if note := re.match(r"note:?\s+(.+)", question, re.IGNORECASE):
        return ToolCall("take_note", {"text": note.group(1)})
    if re.search(r"\d\s*[-+*/]", question):
        return ToolCall("calculate", {"expression": "".join(re.findall(r"[-+*/().\d]", question))})
    for word, name in (("time", "what_time_is_it"), ("notes", "read_notes"), ("file", "list_files")):
        if word in question.lower():
            return ToolCall(name, {})
    return None


async def show_captions(events: AsyncIterator[Event]) -> None:
    """Prints each word when it is heard."""
    async for event in events:
        if isinstance(event, Caption):
            print(event.text, end=" ", flush=True)


async def ask(agent: Agent, question: str) -> None:
    print(f"\nyou: {question}\nassistant: ", end="")
    try:
        await agent.reply(question)
    except SaylineError as error:  # what came before it was heard; the next question may work
        print(f"({error})")


async def listen(agent: Agent) -> None:
    """Questions from the keyboard; whatever is typed stops the answer that is being spoken."""
    answering: asyncio.Task[None] | None = None
    while line := await asyncio.to_thread(sys.stdin.readline):
        await agent.interrupt()
        if answering is not None:
            await answering
        if line.strip():
            answering = asyncio.create_task(ask(agent, line.strip()))
    if answering is not None:
        await answering


async def main(questions: list[str], out: str, llm: str, name: str) -> None:
    async with model(name, llm, system_prompt("en"), stand_in) as chat:
        async with Agent(chat, out, tools=TOOLS) as agent:
            captions = asyncio.create_task(show_captions(agent.events()))
            if questions:
                for question in questions:
                    await ask(agent, question)
            else:
                await listen(agent)
        await captions
        print()


if __name__ == "__main__":
    chosen = chat_options(__doc__).parse_args()
    asked = chosen.questions or ([] if sys.stdin.isatty() else QUESTIONS)
    run(main(asked, chosen.out, chosen.llm, chosen.model))
