"""Weights of the embedded judge's two logistic models; `benchmarks/fit_lexical.py` prints this file.

A key is a feature of `lexical_features.FEATURES`, or the bias. Other weights need another version: verdicts
are kept under it.
"""

from collections.abc import Mapping

VERSION = "lexical-1"

OUTPUT: Mapping[str, float] = {
    "bias": -1.4475,
    "age": -0.8051,
    "size": 0.1927,
    "inputs": 0.0936,
    "failed": 0.2,
    "nearby": 1.1102,
    "on_goal": 0.2857,
    "newest": 0.264,
    "only": 0.0154,
    "used": 0.2075,
    "inputs_used": 0.1117,
    "rerun": -2.5891,
    "reread": -0.8,
    "edited": -0.4,
    "reads": 0.087,
    "writes": -0.3113,
    "shell": -0.0714,
    "other": -0.4161,
    "record": -0.0699,
    "old_record": 0.1626,
}

CALL: Mapping[str, float] = {
    "bias": -1.1618,
    "age": -0.626,
    "size": 0.0998,
    "inputs": 0.3183,
    "failed": 4.0,
    "nearby": 1.0554,
    "on_goal": 0.1767,
    "newest": 0.2287,
    "only": -0.0294,
    "used": 0.1548,
    "inputs_used": 0.7166,
    "rerun": -1.4541,
    "reread": -0.8,
    "edited": -0.4,
    "reads": 0.03,
    "writes": 4.0062,
    "shell": 0.0701,
    "other": -0.8475,
    "record": -0.0934,
    "old_record": 0.1807,
}
