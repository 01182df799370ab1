"""Python functions as tools: descriptions, arguments, results."""

from __future__ import annotations

import enum
import threading
from typing import Annotated, Any, Literal

import pytest

from voice_agent.errors import InputError
from voice_agent.tools import Tool, tool


class Size(enum.Enum):
    """Sizes."""

    small = "s"
    large = "l"


@tool
def order(
    number: int,
    size: Size = Size.small,
    colour: Literal["red", "blue"] = "red",
    notes: list[str] | None = None,
    price: Annotated[float, "in euros"] = 1.0,
    extra: dict[str, Any] | None = None,
    gift: bool = False,
) -> str:
    """Orders something.

    Takes a while.

    Args:
        number: The article's number,
            six digits.
        size (Size): How big.

    Returns:
        number: not a parameter.
    """
    return f"{number!r} {size!r} {colour!r} {notes!r} {price!r} {extra!r} {gift!r}"


def test_the_description_comes_from_signature_and_docstring() -> None:
    function = Tool.of(order).schema["function"]
    assert function["name"] == "order"
    assert function["description"] == "Orders something. Takes a while."
    assert function["parameters"] == {
        "type": "object",
        "properties": {
            "number": {"type": "integer", "description": "The article's number, six digits."},
            "size": {"enum": ["s", "l"], "description": "How big."},
            "colour": {"enum": ["red", "blue"]},
            "notes": {"type": "array", "items": {"type": "string"}},
            "price": {"type": "number", "description": "in euros"},
            "extra": {"type": "object"},
            "gift": {"type": "boolean"},
        },
        "required": ["number"],
    }


def test_sphinx_style_and_no_docstring() -> None:
    def look(city: str, days: int = 1) -> str:
        """Looks.

        :param city: Where.
        :returns: What.
        """
        return city

    def bare_name(x: object) -> object:
        return x

    assert Tool.of(look).schema["function"]["parameters"]["properties"]["city"]["description"] == "Where."
    assert Tool.of(look).description == "Looks."
    assert Tool.of(bare_name).description == "bare name"
    assert Tool.of(bare_name).parameters["properties"] == {"x": {}}


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ({"number": 5}, "5 <Size.small: 's'> 'red' None 1.0 None False"),
        ({"number": "5", "size": "l", "price": "2.5", "notes": ["a"]}, "5 <Size.large: 'l'> 'red' ['a'] 2.5"),
        ({"number": 5.0}, "5 <Size.small"),
        ({"number": 5.5}, "error: number is 5.5: use a whole number"),
        ({"number": "many"}, "error:"),
        ({"number": True}, "error: number is True"),
        ({"number": 5, "colour": "green"}, "error: colour is 'green': use one of 'red', 'blue'"),
        ({"number": 5, "size": "xl"}, "error: 'xl' is not a valid Size"),
        ({"number": 5, "notes": None}, "5 <Size.small"),
        ({"nummer": 5}, "error: order: no argument 'nummer', 'number' is missing; it takes number, size"),
        (None, "error: the arguments are no JSON object: {oops"),
    ],
)  # fmt: skip
async def test_arguments_are_checked_and_fitted(arguments: dict[str, Any] | None, result: str) -> None:
    assert (await Tool.of(order).run(arguments, "{oops")).startswith(result)


async def test_results_become_text() -> None:
    @tool
    async def give(what: str) -> Any:
        """Gives."""
        return {"a": ["ü", object]} if what == "json" else None if what == "none" else "x" * 50_000

    assert (await Tool.of(give).run({"what": "json"})).startswith('{"a": ["ü", "<class')
    assert await Tool.of(give).run({"what": "none"}) == "null"
    assert "50000 characters" in await Tool.of(give).run({"what": "long"})


async def test_a_plain_function_blocks_nobody_and_a_late_one_is_an_error() -> None:
    @tool(timeout_s=0.05)
    def slow() -> str:
        """Waits until the loop, which it must not hold up, lets it go on."""
        return "late" if release.wait(30) else "the loop was blocked"

    release = threading.Event()
    assert await Tool.of(slow).run({}) == "error: slow has not answered within 0.05 s"
    release.set()
    assert slow() == "late"


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (TimeoutError("no answer from the shop"), "error: TimeoutError: no answer from the shop"),
        (SystemExit(2), "error: SystemExit: 2"),
        (KeyError("x"), "error: KeyError: 'x'"),
    ],
)
async def test_whatever_a_tool_raises_is_told_as_its_own(raised: BaseException, told: str) -> None:
    def plain() -> None:
        raise raised

    async def waiting() -> None:
        raise raised

    for function in (plain, waiting):
        assert await Tool.of(function).run({}) == told


def test_what_an_llm_cannot_call_is_refused() -> None:
    with pytest.raises(InputError, match="name"):
        Tool.of(lambda x: x)
    with pytest.raises(InputError, match="only give arguments by name"):

        @tool
        def variadic(*values: int) -> int:
            return sum(values)
