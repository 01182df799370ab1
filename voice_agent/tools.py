"""Python functions as tools of an LLM: the description comes from the signature and the docstring.

@tool
def order_status(number: int, detailed: bool = False) -> str:
    '''Looks up an order.

    Args:
        number: The order number, six digits.
    '''
"""

from __future__ import annotations

import asyncio
import enum
import importlib.util
import inspect
import json
import os
import re
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from voice_agent.errors import ConfigError, InputError

__all__ = ["Tool", "load_tools", "tool"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_LONGEST_RESULT = 20_000
_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_PARAMETER = re.compile(r"^\s*(?::param\s+)?(?P<name>\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.+)$")
_SECTION = re.compile(r"^\s*(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Note)s?:\s*$", re.IGNORECASE)
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that an LLM may call. ``timeout_s``: how long it may take."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any]
    timeout_s: float = 60.0

    @staticmethod
    def of(function: Callable[..., Any]) -> Tool:
        """A function, decorated or not, as a tool. Raises InputError for one that an LLM cannot call."""
        made = getattr(function, "__sayline_tool__", None)
        return made if isinstance(made, Tool) else _described(function, 60.0)

    @property
    def schema(self) -> dict[str, Any]:
        """The description in OpenAI's format."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": dict(self.parameters)},
        }

    async def run(self, arguments: Mapping[str, Any] | None, raw: str = "") -> str:
        """What the LLM is told: the result as text, or what went wrong. Plain functions run in a thread of their own.

        A plain function that is cancelled or late runs on to its end, and its result is dropped.
        """
        if arguments is None:
            return f"error: the arguments are no JSON object: {raw[:200]}"
        try:
            values = self._values(arguments)
        except (InputError, ValueError, TypeError) as error:
            return f"error: {error}"
        patience = asyncio.timeout(self.timeout_s)
        try:
            async with patience:
                return _as_text(await self._call(values))
        except (Exception, SystemExit) as error:  # a tool that ends its program must not end the conversation
            if isinstance(error, TimeoutError) and patience.expired():
                return f"error: {self.name} has not answered within {self.timeout_s:g} s"
            return f"error: {type(error).__name__}: {error}"

    async def _call(self, values: Mapping[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**values)
        result = await asyncio.to_thread(self.function, **values)
        return await result if isinstance(result, Awaitable) else result

    def _values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        known = self.parameters["properties"]
        unknown = [name for name in arguments if name not in known]
        missing = [name for name in self.parameters["required"] if name not in arguments]
        if unknown or missing:
            wrong = [f"no argument {name!r}" for name in unknown] + [f"{name!r} is missing" for name in missing]
            raise InputError(f"{self.name}: {', '.join(wrong)}; it takes {', '.join(known) or 'none'}")
        hints = _hints(self.function)
        return {name: _fitted(value, hints.get(name, Any), name) for name, value in arguments.items()}


@overload
def tool(function: _F) -> _F: ...


@overload
def tool(*, timeout_s: float = 60.0) -> Callable[[_F], _F]: ...


def tool(function: Callable[..., Any] | None = None, *, timeout_s: float = 60.0) -> Any:
    """Makes a function a tool for ``Agent(tools=[...])``; it stays callable as it was.

    Raises InputError, where it is written, for a function whose description an LLM could not follow.
    """

    def decorate(inner: Callable[..., Any]) -> Callable[..., Any]:
        inner.__sayline_tool__ = _described(inner, timeout_s)  # type: ignore[attr-defined]
        return inner

    return decorate(function) if function is not None else decorate


def load_tools(path: str | os.PathLike[str]) -> list[Callable[..., Any]]:
    """The functions of a Python file that are decorated with :func:`tool`. Raises ConfigError if there are none."""
    spec = importlib.util.spec_from_file_location("sayline_tools", path)
    try:
        if spec is None or spec.loader is None:
            raise ImportError("its name has to end in .py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(f"{path}: cannot be read as a Python file with tools: {type(error).__name__}: {error}") from error
    found = [value for value in vars(module).values() if hasattr(value, "__sayline_tool__")]
    if not found:
        raise ConfigError(f"{path}: no function is decorated with @tool (from voice_agent.tools import tool)")
    return found


def _described(function: Callable[..., Any], timeout_s: float) -> Tool:
    name = getattr(function, "__name__", "")
    if not _NAME.match(name):
        raise InputError(f"a tool needs a name of letters, digits, _ and -, at most 64; {function!r} has none")
    description, explained = _read_docstring(inspect.getdoc(function) or "")
    hints = _hints(function)
    properties: dict[str, Any] = {}
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InputError(f"tool {name}: an LLM can only give arguments by name, not {parameter}")
        schema = _schema(hints.get(parameter.name, Any))
        if parameter.name in explained:
            schema.setdefault("description", explained[parameter.name])
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        properties[parameter.name] = schema
    parameters = {"type": "object", "properties": properties, "required": required}
    return Tool(name, description or name.replace("_", " "), parameters, function, timeout_s)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return {}  # hints that name what exists only for type checkers


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the first section, and what "Args:" or ":param" lines say of each parameter."""
    description: list[str] = []
    explained: dict[str, str] = {}
    section, name = "", ""
    for line in text.splitlines():
        heading = _SECTION.match(line)
        if heading:
            section, name = heading.group(1).lower(), ""
            continue
        if line.lstrip().startswith(":"):
            section = "args" if line.lstrip().startswith(":param") else "returns"
        if not section:
            description.append(line)
        elif section in ("args", "arguments", "parameters") and line.strip():
            found = _PARAMETER.match(line)
            if found:
                name = found.group("name").lstrip("*")
                explained[name] = found.group("text").strip()
            elif name:
                explained[name] += f" {line.strip()}"
    return " ".join(" ".join(description).split()), explained


def _schema(hint: Any) -> dict[str, Any]:
    """JSON Schema of a type hint; what is not known may be anything."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        schema = _schema(inner[0])
        notes = [note for note in inner[1:] if isinstance(note, str)]
        return {**schema, "description": notes[0]} if notes else schema
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        parts = [_schema(part) for part in inner if part is not type(None)]
        return parts[0] if len(parts) == 1 else {"anyOf": parts}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if hint in (list, tuple, set) or origin in (list, tuple, set, Sequence):
        items = [part for part in inner if part is not Ellipsis]
        return {"type": "array", "items": _schema(items[0])} if items else {"type": "array"}
    if hint is dict or origin in (dict, Mapping):
        return {"type": "object"}
    return {}


def _fitted(value: Any, hint: Any, name: str) -> Any:
    """A JSON value as its parameter wants it; LLMs like to write numbers as strings. Raises InputError."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fitted(value, inner[0], name)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if origin is Literal and value not in inner:
        raise InputError(f"{name} is {value!r}: use one of {', '.join(map(repr, inner))}")
    if origin in (Union, types.UnionType) and len(rest := [part for part in inner if part is not type(None)]) == 1:
        return None if value is None else _fitted(value, rest[0], name)
    if hint is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if hint in (int, float) and not isinstance(value, bool) and isinstance(value, str | int | float):
        number = float(value)
        if hint is float:
            return number
        if number != int(number):
            raise InputError(f"{name} is {value!r}: use a whole number")
        return int(value) if not isinstance(value, str) or value.strip().lstrip("+-").isdigit() else int(number)
    if hint in (str, int, float, bool) and (not isinstance(value, hint) or (isinstance(value, bool) and hint is int)):
        raise InputError(f"{name} is {value!r}: use {_SIMPLE[hint]}")
    return value


def _as_text(result: Any) -> str:
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    if len(text) > _LONGEST_RESULT:
        text = f"{text[:_LONGEST_RESULT]}\n(cut: the result has {len(text)} characters)"
    return text
