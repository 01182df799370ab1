"""A conversation in an SQLite file: messages, turns (what was said and what was heard of it), the timeline.

    messages  id, turn, message                  OpenAI's format as JSON
    turns     id, ended_at, said, heard, report  ended_at in seconds since 1970, report as JSON
    timeline  turn, sentence, stage, at_s        seconds from the start of the turn

The rows of a turn are written in one transaction, in WAL mode: a process may be killed at any moment.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Sequence

from voice_agent.errors import ConfigError
from voice_agent.llm.deltas import Message
from voice_agent.metrics import STAGES
from voice_agent.report import Report

__all__ = ["ConversationFile"]

_APPLICATION_ID = 0x5361796C  # "Sayl"
_VERSION = 1
_BUSY_S = 0.5  # the event loop waits for it
_TABLES = """
CREATE TABLE turns (id INTEGER PRIMARY KEY, ended_at REAL NOT NULL, said TEXT NOT NULL, heard TEXT NOT NULL,
    report TEXT NOT NULL);
CREATE TABLE messages (id INTEGER PRIMARY KEY, turn INTEGER REFERENCES turns, message TEXT NOT NULL);
CREATE TABLE timeline (turn INTEGER NOT NULL REFERENCES turns, sentence INTEGER NOT NULL, stage TEXT NOT NULL,
    at_s REAL NOT NULL, PRIMARY KEY (turn, sentence, stage)) WITHOUT ROWID;
"""


class ConversationFile:
    """An open file. One process at a time writes; others may read. One thread at a time uses it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the file, or makes it. Raises ConfigError if it is something else or cannot be used."""
        self._path = os.fspath(path)
        try:
            self._database = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._database.close()
            raise self._unusable(error) from error
        except ConfigError:
            self._database.close()
            raise

    def messages(self) -> list[Message]:
        """All messages in order. Raises ConfigError if one of them is damaged."""
        try:
            rows = self._database.execute("SELECT message FROM messages ORDER BY id").fetchall()
            messages = [json.loads(row[0]) for row in rows]
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._unusable(error) from error
        if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
            raise self._unusable("a message has no role")
        return messages

    def add(self, messages: Sequence[Message], report: Report | None) -> None:
        """Writes messages, and the turn that they come from; returns when they are safe. Raises ConfigError if it fails."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                turn = None if report is None else self._add_turn(report)
                self._database.executemany(
                    "INSERT INTO messages (turn, message) VALUES (?, ?)",
                    [(turn, json.dumps(message)) for message in messages],  # ASCII: lone surrogates survive
                )
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        self._database.close()

    def _prepare(self) -> None:
        kind = self._pragma("application_id")
        version = self._pragma("user_version")
        empty = not self._database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if kind == _APPLICATION_ID and version != _VERSION:
            raise ConfigError(
                f"{self._path}: a conversation of version {version}, this Sayline reads version {_VERSION}; "
                "use the Sayline that wrote it, or name a new file"
            )
        if kind != _APPLICATION_ID and not (kind == 0 and empty):
            raise ConfigError(f"{self._path}: an SQLite file, but no conversation of Sayline; name another file")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        if empty:
            self._database.executescript(
                f"BEGIN IMMEDIATE; {_TABLES}"
                f"PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {_VERSION}; COMMIT;"
            )

    def _pragma(self, name: str) -> int:
        return int(self._database.execute(f"PRAGMA {name}").fetchone()[0])

    def _add_turn(self, report: Report) -> int | None:
        said, heard = (text.encode("utf-8", "replace").decode() for text in (report.text, report.heard))
        turn = self._database.execute(
            "INSERT INTO turns (ended_at, said, heard, report) VALUES (?, ?, ?, ?)",
            (time.time(), said, heard, json.dumps(report.as_dict(), default=str)),
        ).lastrowid
        self._database.executemany(
            "INSERT INTO timeline VALUES (?, ?, ?, ?)",
            [
                (turn, times.index, stage, at_s)
                for times in report.sentences
                for stage in STAGES
                if (at_s := getattr(times, f"{stage}_s")) is not None
            ],
        )
        return turn

    def _unusable(self, reason: object) -> ConfigError:
        return ConfigError(f"{self._path}: cannot be used as a conversation ({reason}); name another file, or a new one")
