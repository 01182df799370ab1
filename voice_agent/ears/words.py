"""The word lists of turn taking, from ``words.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

__all__ = ["word_list"]


@cache
def word_list(name: str) -> dict[str, tuple[str, ...]]:
    """One list, by language: the words of ``en`` and ``zh``."""
    lists = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
    return {language: tuple(words.split()) for language, words in lists[name].items()}
