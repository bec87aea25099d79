"""Weights of the line picker; `benchmarks/fit_facts.py` writes this file.

Logits, in the order of `facts.FEATURES`. A line whose odds are below `LEAST` never stays.
"""

LEAST = -5.3
BIAS = -7.336
WEIGHTS: tuple[float, ...] = (
    -0.457,  # length
    -1.749,  # short
    1.898,  # fresh
    0.297,  # only
    1.008,  # reused
    2.114,  # goal
    0.758,  # recent
    -0.821,  # path
    -0.187,  # defines
    1.363,  # early
    -0.744,  # repeats
    -0.513,  # depth
    2.736,  # open
)
