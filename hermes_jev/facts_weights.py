"""Weights of the line picker; `benchmarks/fit_facts.py` writes this file.

Logits, in the order of `facts.FEATURES`. A line whose odds are below `LEAST` never stays.
"""

LEAST = -4.6
BIAS = -6.11
WEIGHTS = (
    -0.23,  # length
    -1.035,  # short
    0.991,  # fresh
    0.226,  # only
    0.955,  # reused
    0.513,  # goal
    1.318,  # recent
    0.479,  # path
    0.5,  # defines
    -0.369,  # early
    -0.337,  # repeats
)
