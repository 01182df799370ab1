"""The log: one JSON object a line. What was said is in it only where the settings ask for it."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

__all__ = ["request_log", "set_up_logging"]

_REQUESTS = logging.getLogger("sayline.requests")


class _JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _worth_a_line(record: logging.LogRecord) -> bool:
    """Not that a socket opened or closed: its request has a line, and what is in its URL is nobody's business."""
    return record.levelno > logging.INFO or "websockets" not in record.pathname


def set_up_logging(level: str, file: TextIO | None = None) -> None:
    """Sends Sayline's and uvicorn's records to ``file`` (the standard error) as JSON lines."""
    handler = logging.StreamHandler(file or sys.stderr)
    handler.setFormatter(_JsonLines())
    for name in ("sayline", "voice_agent", "tts_engine", "uvicorn", "aiortc"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper() if name != "aiortc" else "WARNING")
    logging.getLogger("uvicorn.error").addFilter(_worth_a_line)
    logging.getLogger("uvicorn.access").handlers = []  # our own line says more, and nothing that was said
    logging.getLogger("uvicorn.access").propagate = False


def request_log(row: dict[str, Any], outcome: str, queued: int, text: str | None) -> None:
    """The line of a stream that ended: who, how many waited when it came (qsize), how quick, how much, what became of it."""
    fields = {
        "uid": row["uid"],
        "kind": row["kind"],
        "guest": row["guest"],
        "voice": row["voice"],
        "qsize": queued,
        "latency_ms": None if row["first_sound_s"] is None else round(1000 * row["first_sound_s"], 1),
        "text_len": row["text_chars"],
        "audio_s": row["audio_s"],
        "heard_s": row["heard_s"],
        "underruns": row["underruns"],
        "took_s": row["age_s"],
        "outcome": outcome,
    }
    if text is not None:
        fields["text"] = text
    _REQUESTS.info("%s %s", row["kind"], outcome, extra={"fields": fields})
