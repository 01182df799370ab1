"""What the room sounds like without the user, and how far a sound must stand out of it."""

from __future__ import annotations

import numpy as np

from voice_agent.ears.features import BANDS, Bands

__all__ = ["LASTING", "Background", "prominence_db"]

_REMEMBERED = 300  # hops of 10 ms
_EVERY = 10  # hops between two looks at them
_QUIETEST_DB = -72.0  # of a band: below this a room counts as silent
_LASTING = 30  # percent of the last three seconds that are no louder: background, whatever it is
_FIRST = 30  # hops after which something is known
_UNKNOWN_DB = 10.0  # needed in a room that is not known yet
_DEVIATIONS = 2.5
_HIGHEST = 4  # bands that count
_LEAST_DB, _MOST_DB = 3.5, 12.0  # of what is needed
_RESTLESS_DB = 9.0  # needed where its louder moments are like a quiet user
_LASTING_DEVIATIONS = 2.7
LASTING = 10  # hops: a mean over so many tells a voice from other voices, which one hop does not


def prominence_db(levels: Bands, reference: Bands) -> Bands:
    """How far the four most prominent bands stand out of the reference, on average; [..., bands] in dB.

    The harmonics of a voice stand out of noise that is as loud as the voice over all.
    """
    prominence: Bands = np.sort(levels - reference, axis=-1)[..., -_HIGHEST:].mean(axis=-1)
    return prominence


class Background:
    """Follows what is not speech, hop by hop, over the last three seconds.

    ``power`` by band, mean squares: the mean (in dB) outside of speech, and at least what a third of everything stays
    below, so that a noise that sets in and is taken for speech is background after that time; speech itself has as many
    pauses. ``needed_db``: how prominent a sound must be to be more than this background at its louder moments, which are
    louder in babble than in steady noise. ``restless``: so loud that single hops prove little; ``lasting_db`` is then how
    prominent the mean of ten hops must be.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._quiet = np.zeros((_REMEMBERED, BANDS))  # decibels
        self._all = np.zeros((_REMEMBERED, BANDS))
        self._quiet_hops = 0
        self._hops = 0
        self.power: Bands = np.full(BANDS, 10 ** (_QUIETEST_DB / 10))
        self.needed_db = _UNKNOWN_DB
        self.lasting_db = _UNKNOWN_DB
        self.restless = False

    @property
    def known(self) -> bool:
        """Whether enough has been heard to tell anything."""
        return self._hops >= _FIRST

    def feed(self, levels: Bands, quiet: bool) -> None:
        """A hop, in dB by band, and whether nothing but the room is heard in it."""
        self._all[self._hops % _REMEMBERED] = levels
        self._hops += 1
        if quiet:
            self._quiet[self._quiet_hops % _REMEMBERED] = levels
            self._quiet_hops += 1
        if self._hops % _EVERY == 0 and self._hops >= _FIRST:
            self._look()

    def _look(self) -> None:
        quiet = self._quiet[: self._quiet_hops]
        level = np.maximum(np.percentile(self._all[: self._hops], _LASTING, axis=0), _QUIETEST_DB)
        if len(quiet):
            level = np.maximum(level, quiet.mean(axis=0))
        self.power = 10 ** (level / 10)
        if len(quiet) >= _FIRST:
            seen = prominence_db(quiet, level)
            mean_db = float(seen.mean())
            needed_db = mean_db + _DEVIATIONS * float(seen.std())
            self.restless = needed_db > _RESTLESS_DB
            self.needed_db = min(max(needed_db, _LEAST_DB), _MOST_DB)
            lasting = np.convolve(seen, np.full(LASTING, 1 / LASTING), "valid")
            self.lasting_db = min(mean_db + _LASTING_DEVIATIONS * float(lasting.std()), _MOST_DB)
