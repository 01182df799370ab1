"""The only reader of prompts/*.yaml: finds a file, checks it strictly, and builds the system prompts from it.

A file comes from the user's directory where it has one of that name, otherwise from the package. Errors are
``ConfigError`` and name the file, the key and what is allowed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

from tts_engine.types import Language
from voice_agent.errors import ConfigError, clipped

Mode = Literal["rules", "tags", "both"]
"""Who decides speed and breaks: the rules in prosody.yaml, the LLM by its tags, or the rules until a tag differs."""

_PACKAGED = Path(__file__).with_name("_prompts")
_CHECKOUT = Path(__file__).parent.parent / "prompts"
_LANGUAGES: tuple[Language, ...] = get_args(Language)
_T = TypeVar("_T")
_built: dict[tuple[str, str], tuple[tuple[int, int], Any]] = {}


class Section:
    """A mapping of a prompts file, read key by key; each reader checks what it finds.

    ``keys`` are all that the section may hold (None: any).
    """

    def __init__(self, values: object, where: str, keys: Iterable[str] | None = None) -> None:
        if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
            raise ConfigError(f"{where}: expected a mapping of names to values, found {shown(values)}")
        self.values: dict[str, object] = values
        self.where = where
        if keys is not None:
            known = sorted(keys)
            for key in values:
                if key not in known:
                    raise ConfigError(f"{self.at(key)}: unknown key; allowed: {', '.join(known)}")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def at(self, key: str) -> str:
        """Where a key is, for a message."""
        return place_of(self.where, key)

    def _get(self, key: str, what: str) -> object:
        if key not in self.values:
            raise ConfigError(f"{self.at(key)}: missing; expected {what}")
        return self.values[key]

    def number(self, key: str, least: float, most: float, default: float | None = None) -> float:
        what = f"a number from {least:g} to {most:g}"
        if default is not None and key not in self.values:
            return default
        value = self._get(key, what)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ConfigError(f"{self.at(key)}: expected {what}, found {shown(value)}")
        return float(value)

    def text(self, key: str) -> str:
        value = self._get(key, "a text")
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"{self.at(key)}: expected a text, found {shown(value)}")
        return value

    def switch(self, key: str) -> bool:
        value = self._get(key, "true or false")
        if not isinstance(value, bool):
            raise ConfigError(f"{self.at(key)}: expected true or false, found {shown(value)}")
        return value

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        what = f"one of {', '.join(allowed)}"
        value = self._get(key, what)
        if value not in allowed:
            raise ConfigError(f"{self.at(key)}: expected {what}, found {shown(value)}")
        return cast(str, value)

    def words(self, key: str, separator: str | None = ",") -> tuple[str, ...]:
        """Words and phrases: a text with ``separator`` (None: blanks) between them, or a list. No key gives none."""
        value = self.values.get(key, "")
        if isinstance(value, str):
            return tuple(word for part in value.split(separator) if (word := " ".join(part.split())))
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return tuple(word for part in value if (word := " ".join(part.split())))
        raise ConfigError(f"{self.at(key)}: expected words with commas between them, or a list of words, found {shown(value)}")

    def section(self, key: str, keys: Iterable[str] | None = None) -> Section:
        return Section(self.values.get(key, {}), self.at(key), keys)

    def sections(self, key: str, keys: Iterable[str]) -> list[Section]:
        value = self._get(key, "a list")
        if not isinstance(value, list):
            raise ConfigError(f"{self.at(key)}: expected a list, found {shown(value)}")
        return [Section(item, f"{self.at(key)}[{index}]", keys) for index, item in enumerate(value)]


def load(name: str, build: Callable[[Section], _T], directory: Path | str | None = None) -> _T:
    """What ``build`` makes of ``name`` (such as "prosody.yaml"). Built again only when the file has changed.

    ``directory`` is the user's own; it may hold any of the files and hides the packaged one of that name, whole.
    """
    path = _find(name, directory)
    stat = path.stat()
    stamp = (stat.st_mtime_ns, stat.st_size)
    key = (str(path), f"{build.__module__}.{build.__qualname__}")
    known = _built.get(key)
    if known is None or known[0] != stamp:
        known = _built[key] = (stamp, build(Section(read_yaml(path), str(path) if directory else name)))
    return cast(_T, known[1])


def system_prompt(language: Language = "en", mode: Mode = "both", directory: Path | str | None = None) -> str:
    """The system prompt that teaches an LLM to write for the ear and, except in mode "rules", to mark up its text."""
    if language not in _LANGUAGES:
        raise ConfigError(f"system prompt: language is one of {', '.join(_LANGUAGES)}, not {language!r}")
    if mode not in get_args(Mode):
        raise ConfigError(f"system prompt: mode is one of {', '.join(get_args(Mode))}, not {mode!r}")
    prompt = load("system.yaml", _read_system, directory)[language]
    if mode == "rules":
        return f"{prompt['voice']}\n\n{prompt['rules']}"
    tags = "\n".join(f"{tag['example']}  {tag[language]}" for tag in load("tags.yaml", _read_tags, directory))
    closing = prompt["both"] if mode == "both" else prompt["only_tags"]
    return f"{prompt['voice']}\n\n{prompt['tags'].replace('{tags}', tags)}\n\n{closing}"


def _read_system(section: Section) -> dict[str, dict[str, str]]:
    keys = ("voice", "rules", "tags", "only_tags", "both")
    whole = Section(section.values, section.where, _LANGUAGES)
    return {name: {key: whole.section(name, keys).text(key).strip() for key in keys} for name in _LANGUAGES}


def _read_tags(section: Section) -> list[dict[str, str]]:
    keys = ("example", *_LANGUAGES)
    tags = Section(section.values, section.where, ("tags",)).sections("tags", keys)
    return [{key: tag.text(key).strip() for key in keys} for tag in tags]


def _find(name: str, directory: Path | str | None) -> Path:
    if directory is not None:
        own = Path(directory)
        if not own.is_dir():
            raise ConfigError(f"{own}: there is no such directory for prompts")
        if (own / name).is_file():
            return own / name
    for base in (_PACKAGED, _CHECKOUT):
        if (base / name).is_file():
            return base / name
    raise ConfigError(f"{name}: not found in {_PACKAGED} or {_CHECKOUT}; install Sayline again")


def read_yaml(path: Path) -> object:
    """A YAML file, in which no key may stand twice. Raises ConfigError that names the file and the line."""
    import yaml  # 10 ms that only a first reading pays

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Mapping[object, object]:
            keys = [child.value for child, _ in node.value]
            for key in keys:
                if keys.count(key) > 1:
                    raise ConfigError(f"{path}: line {node.start_mark.line + 1}: the key {key!r} stands twice")
            mapping: Mapping[object, object] = super().construct_mapping(node, deep)
            return mapping

    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); it has to be a UTF-8 text file") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error


def place_of(where: str, key: object) -> str:
    """Where a key of the file or section ``where`` is, for a message: ``prosody.yaml: speed.least``."""
    return f"{where}.{key}" if ": " in where else f"{where}: {key}"


def shown(value: object) -> str:
    """A value that was found, for a message: cut where it is long."""
    return clipped(repr(value))
