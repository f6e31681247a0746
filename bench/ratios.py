"""Ratios of times with intervals, as bench/compare.py reports them.

A sample is one process: its median time for each runtime. Runtimes of one process were subject to
the same noise, so ratios are computed within a process. Above 1, Tessera is faster.
"""

import dataclasses

import numpy as np

RESAMPLES = 4000
CONFIDENCE = 0.95
SEED = 20240229


@dataclasses.dataclass(frozen=True)
class Ratio:
    """An estimate and its interval; a single process gives no interval."""

    value: float
    low: float | None
    high: float | None

    def as_dict(self):
        interval = None if self.low is None else [self.low, self.high]
        return {"ratio": self.value, "ratio_interval": interval}


def _ratio(value, resampled):
    if resampled is None:
        return Ratio(float(value), None, None)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Ratio(float(value), float(low), float(high))


def _resampled_medians(ratios, generator):
    """Medians of samples drawn from `ratios` with replacement; None if there is only one."""
    if len(ratios) < 2:
        return None
    drawn = generator.integers(0, len(ratios), (RESAMPLES, len(ratios)))
    return np.median(np.asarray(ratios)[drawn], axis=1)


def ratio_of(other, own):
    """`other` / `own`: medians in milliseconds of the same processes, in the same order."""
    ratios = np.asarray(other) / np.asarray(own)
    resampled = _resampled_medians(ratios, np.random.default_rng(SEED))
    return _ratio(np.median(ratios), resampled)


def geometric_mean(pairs):
    """The geometric mean of the ratios of `pairs`, one (other, own) for each model."""
    generator = np.random.default_rng(SEED)
    logarithms, resampled = [], []
    for other, own in pairs:
        ratios = np.asarray(other) / np.asarray(own)
        logarithms.append(np.log(np.median(ratios)))
        resampled.append(_resampled_medians(ratios, generator))
    if any(sample is None for sample in resampled):
        return _ratio(np.exp(np.mean(logarithms)), None)
    means = np.exp(np.mean(np.log(resampled), axis=0))
    return _ratio(np.exp(np.mean(logarithms)), means)
