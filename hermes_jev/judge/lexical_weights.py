"""Weights of the embedded judge's two logistic models; `benchmarks/fit_lexical.py` prints this file.

A key is a feature of `lexical_features.FEATURES`, or the bias. Other weights need another version: verdicts
are kept under it.
"""

from collections.abc import Mapping

VERSION = "lexical-2"

OUTPUT: Mapping[str, float] = {
    "bias": -0.7509,
    "age": -0.8009,
    "size": 0.1917,
    "inputs": 0.0931,
    "failed": 0.199,
    "nearby": 1.1044,
    "on_goal": 0.2842,
    "newest": 0.2626,
    "only": 0.0153,
    "used": 0.2064,
    "inputs_used": 0.1111,
    "rerun": -2.5755,
    "reread": -0.7958,
    "edited": -0.3979,
    "reads": 0.0865,
    "writes": -0.3097,
    "shell": -0.071,
    "other": -0.4139,
    "record": -0.0695,
    "old_record": 0.1617,
}

CALL: Mapping[str, float] = {
    "bias": -0.8324,
    "age": -0.6679,
    "size": 0.1065,
    "inputs": 0.3396,
    "failed": 4.2679,
    "nearby": 1.1261,
    "on_goal": 0.1885,
    "newest": 0.244,
    "only": -0.0314,
    "used": 0.1652,
    "inputs_used": 0.7646,
    "rerun": -1.5515,
    "reread": -0.8536,
    "edited": -0.4268,
    "reads": 0.032,
    "writes": 4.2745,
    "shell": 0.0748,
    "other": -0.9043,
    "record": -0.0997,
    "old_record": 0.1928,
}
