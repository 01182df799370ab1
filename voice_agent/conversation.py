"""The history of a conversation, in OpenAI's message format: of the assistant's words only those that were heard."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal, Self

from voice_agent.conversation_file import ConversationFile
from voice_agent.llm.deltas import Message
from voice_agent.report import Report

__all__ = ["Conversation", "Keep"]

Keep = Literal["heard", "whole"]
"""What is kept of the assistant's words: what was heard of them, or all (a confirmation that must not be forgotten)."""


class Conversation:
    """What was said so far. ``messages`` can be handed to any OpenAI-compatible model.

    ``keep`` holds for turns that do not ask for something else. :meth:`open` keeps everything in a file too.
    """

    def __init__(self, messages: Iterable[Message] = (), *, keep: Keep = "heard") -> None:
        self.messages: list[Message] = list(messages)
        self.keep = keep
        self._file: ConversationFile | None = None
        self._unwritten: deque[tuple[Sequence[Message], Report | None]] = deque()

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, keep: Keep = "heard") -> Self:
        """A conversation that is kept in an SQLite file: a new one, or one that goes on.

        Each message is in the file when the method that added it returns, so a killed process loses no more than the
        answer it was speaking. Raises ConfigError for a file of another kind or version, or one that cannot be used.
        """
        file = ConversationFile(path)
        conversation = cls(file.messages(), keep=keep)
        conversation._file = file
        return conversation

    def user(self, text: str) -> None:
        """The user said ``text``."""
        self.add([{"role": "user", "content": text}])

    def assistant(self, text: str) -> None:
        """The assistant said ``text``; nothing is kept of an empty answer."""
        if text:
            self.add([{"role": "assistant", "content": text}])

    def add(self, messages: Sequence[Message], report: Report | None = None) -> None:
        """What a turn adds, tool calls and their results in order; all of it or, in a crash, nothing.

        ``report`` goes into the file with it: what was said, what was heard, and when. Raises ConfigError where the file
        cannot be written; ``messages`` has it then, and the next call writes it too.
        """
        self.messages += messages
        if self._file is not None:
            self._unwritten.append((list(messages), report))
            self._write(self._file)

    def close(self) -> None:
        """Closes the file, if there is one. Raises ConfigError if it does not hold everything."""
        file, self._file = self._file, None
        if file is not None:
            try:
                self._write(file)
            finally:
                file.close()

    def _write(self, file: ConversationFile) -> None:
        while self._unwritten:
            file.add(*self._unwritten[0])
            self._unwritten.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
