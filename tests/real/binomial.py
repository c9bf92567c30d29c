"""How many of a number of chances come true."""

from math import exp, lgamma, log

__all__ = ["binomial_interval"]


def binomial_interval(number: int, share: float, confidence: float = 0.99) -> tuple[int, int]:
    """Return the central interval of a binomial distribution: outside lies at most half of the rest on each side."""
    tail, low, high = (1 - confidence) / 2, 0, number
    below = above = 0.0
    while (below := below + _chance(low, number, share)) <= tail:
        low += 1
    while (above := above + _chance(high, number, share)) <= tail:
        high -= 1
    return low, high


def _chance(times: int, number: int, share: float) -> float:
    """Return the chance of exactly so many, by logarithms: the powers themselves are too small for a number."""
    ways = lgamma(number + 1) - lgamma(times + 1) - lgamma(number - times + 1)
    return exp(ways + times * log(share) + (number - times) * log(1 - share))
