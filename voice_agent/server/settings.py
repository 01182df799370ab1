"""Reads the server's settings: flags before environment before file before defaults, every key checked.

A setting ``limits.text_chars`` is ``--set limits.text_chars=8000``, ``SAYLINE_LIMITS_TEXT_CHARS=8000`` or, in the YAML
file, ``text_chars: 8000`` under ``limits:``. Lists of plain values are written with commas outside of YAML.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from voice_agent.errors import ConfigError
from voice_agent.prompts import place_of, read_yaml, shown
from voice_agent.server.config import KeySettings, ServerConfig

__all__ = ["load_config"]

_PREFIX = "SAYLINE_"
_KEY = "SAYLINE_API_KEY"
_KEYS = "SAYLINE_KEYS"
_FILE = "SAYLINE_CONFIG"
_ALIKE = 0.85
"""Of difflib's ratio: a slip of the pen, not what Kubernetes sets for a service of this name."""
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def load_config(
    path: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
) -> ServerConfig:
    """``flags``: setting to value, None where it was not given; ``sets``: "setting=value", which count as flags.

    ``path`` None reads the file that SAYLINE_CONFIG names, if any. SAYLINE_API_KEY is a key of the name "default". Raises
    ConfigError that names the file, the variable or the flag, and the key.
    """
    environment = environment or {}
    path = path or environment.get(_FILE)
    tree: dict[str, Any] = {}
    if path is not None:
        data = read_yaml(Path(path))
        _merge(tree, _checked(data if data is not None else {}, ServerConfig, str(path)))
    leaves = dict(_leaves(ServerConfig))
    sections = tuple({f"{_PREFIX}{name.partition('.')[0].upper()}_" for name in leaves if "." in name})
    by_variable = {_PREFIX + name.replace(".", "_").upper(): name for name in leaves}
    for variable, text in environment.items():
        if variable in by_variable:
            name = by_variable[variable]
            _put(tree, name, _parsed(text, leaves[name], variable))
        elif variable.startswith(sections):
            raise ConfigError(f"{variable}: unknown setting; there are {', '.join(sorted(by_variable))}")
        elif variable == _KEYS:
            raise ConfigError(f"{_KEYS}: several keys are written in the file; one alone is {_KEY}")
        elif variable.startswith(_PREFIX) and variable not in (_KEY, _FILE):  # others may have variables of this name, too
            for meant in get_close_matches(variable, (_KEY, _FILE, *by_variable), 1, _ALIKE):
                raise ConfigError(f"{variable}: unknown setting; did you mean {meant}?")
    if environment.get(_KEY):
        tree["keys"] = (*tree.get("keys", ()), _made(KeySettings, {"name": "default", "key": environment[_KEY]}, _KEY))
    for name, value in (flags or {}).items():
        if value is not None:
            _put(tree, name, _plain(value, leaves[name], name))
    for given in sets:
        name, equals, text = given.partition("=")
        if not equals or name not in leaves:
            raise ConfigError(f"--set {given}: write setting=value with one of the settings {', '.join(leaves)}")
        _put(tree, name, _parsed(text, leaves[name], f"--set {name}"))
    config = _built(ServerConfig, tree, str(path) if path is not None else "settings")
    assert isinstance(config, ServerConfig)
    return config


def _leaves(kind: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """The settings that can be written in one line, and their types."""
    found: list[tuple[str, Any]] = []
    for name, hint in _hints(kind).items():
        if is_dataclass(hint):
            found += _leaves(hint, f"{prefix}{name}.")
        elif not is_dataclass(_items(hint)):
            found.append((prefix + name, hint))
    return found


def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _items(hint: Any) -> Any:
    """The type of a tuple's items, None for what is no tuple."""
    return get_args(hint)[0] if get_origin(hint) is tuple else None


def _checked(value: object, hint: Any, where: str) -> Any:
    """A value of the YAML file in the form of its type; sections become dicts of what was written."""
    if is_dataclass(hint):
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: expected a mapping of names to values, found {value!r}")
        hints = _hints(hint)
        for key in value:
            if key not in hints:
                raise ConfigError(f"{place_of(where, key)}: unknown key; allowed: {', '.join(sorted(hints))}")
        return {key: _checked(each, hints[key], place_of(where, key)) for key, each in value.items()}
    item = _items(hint)
    if item is not None:
        if not isinstance(value, list):
            raise ConfigError(f"{where}: expected a list, found {value!r}")
        checked = [_checked(each, item, f"{where}[{index}]") for index, each in enumerate(value)]
        if is_dataclass(item):
            return tuple(_made(item, each, f"{where}[{index}]") for index, each in enumerate(checked))
        return tuple(checked)
    return _plain(value, hint, where)


def _plain(value: object, hint: Any, where: str) -> Any:
    if get_origin(hint) is Literal:
        if value in get_args(hint):
            return value
        raise ConfigError(f"{where}: expected one of {', '.join(get_args(hint))}, found {value!r}")
    if get_origin(hint) in (Union, types.UnionType):
        if value is None:
            return None
        return _plain(value, get_args(hint)[0], where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is hint:
        return value
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    raise ConfigError(f"{where}: expected {names[hint]}, found {shown(value)}")


def _parsed(text: str, hint: Any, where: str) -> Any:
    """A value that was written as text: in the environment or after --set."""
    item = _items(hint)
    if item is not None:
        return tuple(_parsed(part.strip(), item, where) for part in text.split(",") if part.strip())
    kind = get_args(hint)[0] if get_origin(hint) in (Union, types.UnionType) else hint
    value: object = text
    if kind is bool:
        value = True if text.lower() in _TRUE else False if text.lower() in _FALSE else text
    elif kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            value = text
    return _plain(value, hint, where)


def _merge(tree: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            _merge(tree.setdefault(key, {}), value)
        else:
            tree[key] = value


def _put(tree: dict[str, Any], name: str, value: object) -> None:
    *sections, last = name.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
    tree[last] = value


def _built(kind: Any, tree: Mapping[str, Any], where: str) -> object:
    hints = _hints(kind)
    values = {
        key: _built(hints[key], value, place_of(where, key)) if is_dataclass(hints[key]) else value
        for key, value in tree.items()
    }
    return _made(kind, values, where)


def _made(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    missing = [each for each in ("name", "key", "urls") if each in _hints(kind) and each not in values]
    if missing:
        raise ConfigError(f"{where}: {missing[0]} is missing")
    try:
        return kind(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
