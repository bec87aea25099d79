"""What is believed of one answer, and what follows from it: pure functions.

Answers are read leniently in form and strictly in substance, each by itself: one that cannot be trusted is no answer.
What a service says of its own score, choice or confidence is not used where it gives probabilities, because services
compute them differently; the functions at the end compute them.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping

from .protocol import Answer, Question, QuestionKind

_TYPE_NAMES: Mapping[QuestionKind, tuple[str, ...]] = {
    "noul": ("noul", "predicate", "boolean"),
    "choice": ("choice",),
    "score": ("score",),
}


def believed(question: Question, answer: object) -> Answer | None:
    """The answer as checked, or None: another type, no probability where one belongs, probabilities that are not
    over the options or do not sum to one, an option that was not offered."""
    if not isinstance(answer, Mapping) or answer.get("type") not in _TYPE_NAMES[question.kind]:
        return None
    if question.kind == "noul":
        yes = _probability(answer.get("noul", answer.get("probability")))
        return None if yes is None else Answer({"true": yes})
    options = _options(question)
    if question.kind == "choice" and not _is_option(answer.get("choice"), options):
        return None
    probabilities = answer.get("probabilities")
    if probabilities is None or probabilities == {} or probabilities == []:
        return _without_probabilities(question, answer, options)
    return _distribution(probabilities, options)


def nfc(name: str) -> str:
    """Names are compared in one Unicode form: some services send another than they were sent."""
    return unicodedata.normalize("NFC", name)


def likeliest(answer: Answer) -> str | None:
    """The option or level with the highest probability, the first among equals; the one named where there are no
    probabilities; None for a bare score."""
    if not answer.probabilities:
        return answer.level
    return max(answer.probabilities, key=lambda name: answer.probabilities[name])


def expected_score(answer: Answer) -> float:
    """Mean level of a score, from 0 to n - 1, by the probabilities scaled to sum 1."""
    weights = tuple(answer.probabilities.values())
    return math.fsum(level * weight for level, weight in enumerate(weights)) / math.fsum(weights)


def choice_confidence(answer: Answer) -> float:
    """How far the likeliest option stands above chance: 0 for a flat answer, 1 for a certain one."""
    weights = tuple(answer.probabilities.values())
    chance = 1 / len(weights)
    return 1.0 if len(weights) == 1 else max(0.0, (max(weights) / math.fsum(weights) - chance) / (1 - chance))


def score_confidence(answer: Answer) -> float:
    """How near the mass lies to the likeliest level: 1 for one level alone, 0 for mass spread as widely as chance."""
    weights = tuple(answer.probabilities.values())
    if len(weights) == 1:
        return 1.0
    mode = weights.index(max(weights))
    spread = math.fsum(weight * abs(level - mode) for level, weight in enumerate(weights)) / math.fsum(weights)
    middle = (len(weights) - 1) / 2
    chance = math.fsum(abs(level - middle) for level in range(len(weights))) / len(weights)
    return max(0.0, 1 - spread / chance)


def _distribution(probabilities: object, options: Mapping[str, str]) -> Answer | None:
    pairs = list(_probability_pairs(probabilities))
    given = {nfc(name): probability for name, probability in pairs if probability is not None}
    if len(given) != len(pairs) or given.keys() != options.keys():
        return None
    total = math.fsum(given.values())
    # Two decimals each: the error of the sum grows with the options. All zeros says nothing, however many there are.
    if total == 0 or abs(total - 1) > max(0.05, 0.005 * len(options)) + 1e-9:
        return None
    return Answer({name: given[key] for key, name in options.items()})


def _without_probabilities(
    question: Question, answer: Mapping[str, object], options: Mapping[str, str]
) -> Answer | None:
    """An answer that only names an option or level, or only gives a score."""
    if question.kind == "choice":
        choice = answer.get("choice")
        return Answer(level=options[nfc(choice)]) if isinstance(choice, str) else None
    score = answer.get("score")
    if isinstance(score, int | float) and not isinstance(score, bool):
        return Answer(score=float(score)) if 0 <= score <= len(options) - 1 else None
    names = _level_names(question)
    for said in (answer.get("level"), answer.get("label"), score):
        if isinstance(said, str | int) and not isinstance(said, bool):
            level = names.get(nfc(str(said)))
            return None if level is None else Answer(level=level)
    return None


def _level_names(question: Question) -> dict[str, str]:
    """A level by its place, its name or its description; of two that go by one word the place counts, then the name."""
    found: dict[str, str] = {}
    for words in (question.criteria.values(), question.criteria, map(str, range(len(question.criteria)))):
        found |= {nfc(word): level for word, level in zip(words, question.criteria, strict=True) if word}
    return found


def _options(question: Question) -> dict[str, str]:
    """Our name of each option by its name on the wire, where a level goes by its position."""
    if question.kind == "score":
        return {str(level): name for level, name in enumerate(question.criteria)}
    return {nfc(name): name for name in question.criteria}


def _is_option(choice: object, options: Mapping[str, str]) -> bool:
    return choice is None or (isinstance(choice, str) and nfc(choice) in options)


def _probability_pairs(probabilities: object) -> Iterator[tuple[str, float | None]]:
    """Name and probability of each entry; None where it is no probability."""
    if isinstance(probabilities, Mapping):
        for name, value in probabilities.items():
            yield str(name), _probability(value)
    elif isinstance(probabilities, list):
        for position, entry in enumerate(probabilities):
            if isinstance(entry, Mapping):
                yield _entry_name(entry), _probability(entry.get("probability"))
            else:  # A bare number is named by its place, which is the name of a level and of no option.
                yield str(position), _probability(entry)


def _entry_name(entry: Mapping[str, object]) -> str:
    for field in ("value", "label", "name"):
        name = entry.get(field)
        if isinstance(name, str | int):
            return str(name)
    return ""


def _probability(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None  # NaN fails both comparisons
