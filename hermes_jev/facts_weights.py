"""Weights of the line picker; `benchmarks/fit_facts.py` writes this file.

Logits, in the order of `facts.FEATURES`. A line whose odds are below `LEAST` never stays.
"""

LEAST = -4.6
BIAS = -6.056
WEIGHTS = (
    -0.2,  # length
    -1.034,  # short
    1.03,  # fresh
    0.223,  # only
    0.985,  # reused
    0.515,  # goal
    1.325,  # recent
    0.465,  # path
    -0.1,  # number
    0.5,  # defines
    0.198,  # imports
    -0.125,  # record
    -0.319,  # early
    -0.337,  # repeats
    -0.051,  # prose
)
