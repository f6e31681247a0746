"""Ratios of times with intervals, by bootstrap.

A sample is one process or one turn: a time of each of two sides, which were subject to the same
noise, so ratios are computed within a sample. Above 1, the second side is faster."""

import dataclasses

import numpy as np

RESAMPLES = 4000
CONFIDENCE = 0.95
SEED = 20240229


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A value and its interval; a single sample gives no interval."""

    value: float
    low: float | None = None
    high: float | None = None

    def as_dict(self, name="ratio"):
        interval = None if self.low is None else [self.low, self.high]
        return {name: self.value, f"{name}_interval": interval}

    def text(self, digits=2):
        """"1.07 [1.05, 1.09]"."""
        interval = "" if self.low is None else f" [{self.low:.{digits}f}, {self.high:.{digits}f}]"
        return f"{self.value:.{digits}f}{interval}"


def ratio_text(row, digits=2):
    """The text of a ratio in a row, as as_dict() puts it there."""
    return Estimate(row["ratio"], *(row["ratio_interval"] or ())).text(digits)


def _draws(count, generator):
    """Indices of samples drawn with replacement; None if there is only one."""
    return None if count < 2 else generator.integers(0, count, (RESAMPLES, count))


def _estimate(value, resampled):
    tail = (1 - CONFIDENCE) / 2
    return Estimate(float(value), *map(float, np.quantile(resampled, [tail, 1 - tail])))


def estimate(statistic, *samples):
    """`statistic` of arrays of samples that belong together; it takes the last axis away."""
    arrays = [np.asarray(each) for each in samples]
    draws = _draws(len(arrays[0]), np.random.default_rng(SEED))
    if draws is None:
        return Estimate(float(statistic(*arrays)))
    return _estimate(statistic(*arrays), statistic(*(each[draws] for each in arrays)))


def median(values):
    return np.median(values, axis=-1)


def ratio_of(other, own):
    """The median of `other` / `own`: times of the same samples, in the same order."""
    return estimate(median, np.divide(other, own))


def geometric_mean(pairs):
    """The geometric mean of the ratios of `pairs`, one (other, own) for each model."""
    generator = np.random.default_rng(SEED)
    ratios = [np.divide(other, own) for other, own in pairs]
    draws = [_draws(len(each), generator) for each in ratios]
    value = np.exp(np.mean([np.log(median(each)) for each in ratios]))
    if any(drawn is None for drawn in draws):
        return Estimate(float(value))
    medians = [median(each[drawn]) for each, drawn in zip(ratios, draws)]
    return _estimate(value, np.exp(np.mean(np.log(medians), axis=0)))
