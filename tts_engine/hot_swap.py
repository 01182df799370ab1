"""Sees that files were replaced, loads what they hold, and hands it over; a bad file is refused and nothing changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

POLL_S = 0.025
MISSING_POLLS = 80
"""A file that is gone for so many polls (2 s) is waited for no longer, and worth a warning."""

Loaded = TypeVar("Loaded")
_Signature = tuple[int, int, int, int]

log = logging.getLogger(__name__)


class FileWatch:
    """Tells, poll by poll, when a set of files has changed and come to rest. Opens none of them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._known = self._seen = self._look()
        self._missing_polls = 0

    def poll(self) -> bool:
        """True once for each change: when two polls in a row found the same.

        A file that still grows, or was there and is moved away, is waited for; one that was never there need not come, nor one
        that stays away while others are new: who loads them knows whether it is needed.
        """
        before, self._seen = self._seen, self._look()
        together = list(zip(self._paths, self._known, self._seen, strict=True))
        missing = [str(path) for path, known, seen in together if known is not None and seen is None]
        self._missing_polls = self._missing_polls + 1 if missing else 0
        if self._missing_polls == MISSING_POLLS:
            log.warning("%s is gone; what was loaded from it stays in use", ", ".join(missing))
        awaited = missing and self._missing_polls < MISSING_POLLS
        new = any(seen is not None and seen != known for _, known, seen in together)
        if awaited or not new or self._seen != before:
            return False
        self._known = self._seen
        return True

    def _look(self) -> list[_Signature | None]:
        return [_signature(path) for path in self._paths]


class HotSwap(Generic[Loaded]):
    """A thread that watches ``paths``; when they have changed it calls ``load`` and gives the result to ``use``.

    ``load`` must check what it reads and raise if it is wrong: then a warning is logged, nothing is handed over, and
    the next change is waited for. A change is seen within two polls of ``poll_s``.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        load: Callable[[], Loaded],
        use: Callable[[Loaded], None],
        poll_s: float = POLL_S,
    ) -> None:
        self._watch = FileWatch(paths)
        self._load = load
        self._use = use
        self._poll_s = poll_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sayline-hot-swap", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, after the load that it is in."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._poll_s):
            if self._watch.poll():
                self._swap()

    def _swap(self) -> None:
        try:
            loaded = self._load()
        except Exception as error:
            log.warning("the new files were refused, the old ones stay in use: %s", error)
            return
        self._use(loaded)
        log.info("new files are in use")


def _signature(path: Path) -> _Signature | None:
    """Changes whenever the file does: device, inode, size and time; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
