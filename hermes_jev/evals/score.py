"""What a shortened prefix has lost, whatever shortened it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .case import Case
from .needed import Need
from .texts import GAP, Message, argument_values, calls_of, raw_arguments, size_of, text_of


class Loss(NamedTuple):
    """`chars` is the size that is left. `lost` are the needs that no text holds any more, `cut` the places of the
    results that are not there as they were."""

    chars: int
    lost: tuple[Need, ...]
    cut: frozenset[int]

    @property
    def results(self) -> frozenset[int]:
        """The results that would have to be fetched again."""
        return frozenset(need.results[-1] for need in self.lost if need.results)

    @property
    def steps(self) -> frozenset[int]:
        """The later messages that miss something."""
        return frozenset(need.used_at for need in self.lost)


def loss_of(case: Case, after: Sequence[Message]) -> Loss:
    """Compare a shortened prefix with the case. Messages that are the very objects of the case are not searched."""
    places = {id(message): at for at, message in enumerate(case.prefix)}
    whole = {places[id(message)] for message in after if id(message) in places}
    new = [message for message in after if id(message) not in places]
    changed = GAP.join(part for message in new for part in _texts(message))
    lost = tuple(
        need
        for need, holders in zip(case.needs, case.loose, strict=True)
        if whole.isdisjoint(holders) and need.text not in changed
    )
    cut = frozenset(place for place in case.results if place not in whole)
    return Loss(sum(case.sizes[at] for at in whole) + size_of(new), lost, cut)


def _texts(message: Message) -> list[str]:
    functions = calls_of(message)
    return [text_of(message), *map(argument_values, functions), *map(raw_arguments, functions)]
