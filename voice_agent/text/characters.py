"""Text that comes from outside, as characters that can be written down anywhere."""

from __future__ import annotations

__all__ = ["whole_characters"]


def whole_characters(text: str) -> str:
    """The text with a question mark for each half of a UTF-16 pair, which JSON may hold and no encoding has."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
