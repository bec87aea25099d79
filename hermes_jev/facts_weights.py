"""Weights of the line picker; `benchmarks/fit_facts.py` writes this file.

Logits, in the order of `facts.FEATURES`. A line whose odds are below `LEAST` never stays.
"""

LEAST = -4.6
BIAS = -6.273
WEIGHTS = (
    -0.295,  # length
    -1.037,  # short
    1.024,  # fresh
    0.213,  # only
    0.85,  # reused
    2.293,  # goal
    1.023,  # recent
    0.464,  # path
    0.5,  # defines
    -0.435,  # early
    -0.333,  # repeats
)
