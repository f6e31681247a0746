"""Ratios of times with intervals, by bootstrap.

A sample is one process or one turn: a time of each of two sides, which were subject to the same
noise, so ratios are computed within a sample. Above 1, the second side is faster."""

import dataclasses

import numpy as np

RESAMPLES = 4000
CONFIDENCE = 0.95
SEED = 20240229


@dataclasses.dataclass(frozen=True)
class Ratio:
    """An estimate and its interval; a single sample gives no interval."""

    value: float
    low: float | None
    high: float | None

    def as_dict(self):
        interval = None if self.low is None else [self.low, self.high]
        return {"ratio": self.value, "ratio_interval": interval}


def ratio_text(entry, digits=2):
    """Of what as_dict() returns: "1.07 [1.05, 1.09]"."""
    text = f"{entry['ratio']:.{digits}f}"
    if entry["ratio_interval"] is None:
        return text
    low, high = entry["ratio_interval"]
    return f"{text} [{low:.{digits}f}, {high:.{digits}f}]"


def _estimate(value, resampled):
    if resampled is None:
        return Ratio(float(value), None, None)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Ratio(float(value), float(low), float(high))


def _draws(count, generator):
    """Indices of samples drawn with replacement; None if there is only one."""
    return None if count < 2 else generator.integers(0, count, (RESAMPLES, count))


def _resampled_medians(ratios, generator):
    draws = _draws(len(ratios), generator)
    return None if draws is None else np.median(np.asarray(ratios)[draws], axis=1)


def estimate(statistic, *samples):
    """`statistic` of arrays of samples that belong together; it takes the last axis away."""
    arrays = [np.asarray(each) for each in samples]
    draws = _draws(len(arrays[0]), np.random.default_rng(SEED))
    return _estimate(statistic(*arrays),
                     None if draws is None else statistic(*(each[draws] for each in arrays)))


def ratio_of(other, own):
    """The median of `other` / `own`: times of the same samples, in the same order."""
    return estimate(lambda ratios: np.median(ratios, axis=-1), np.divide(other, own))


def geometric_mean(pairs):
    """The geometric mean of the ratios of `pairs`, one (other, own) for each model."""
    generator = np.random.default_rng(SEED)
    logarithms, resampled = [], []
    for other, own in pairs:
        ratios = np.asarray(other) / np.asarray(own)
        logarithms.append(np.log(np.median(ratios)))
        resampled.append(_resampled_medians(ratios, generator))
    if any(sample is None for sample in resampled):
        return _estimate(np.exp(np.mean(logarithms)), None)
    return _estimate(np.exp(np.mean(logarithms)), np.exp(np.mean(np.log(resampled), axis=0)))
