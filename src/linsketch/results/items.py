"""Items as people and machines are shown them."""

from dataclasses import asdict, dataclass
from typing import Any

from linsketch.history import Estimate
from linsketch.keys import KeySpace


@dataclass(frozen=True)
class Found:
    """A line of the list: an item as JSON has it, and its count."""

    item: Any
    estimate: float
    stderr: float
    rounds: int  # in which it was seen
    suspect: bool = False
    true_count: int | None = None  # after the bound; None: not checked, or too small to be kept

    @classmethod
    def of(cls, line: Estimate, keys: KeySpace[Any]) -> "Found":
        """Return the line of an estimate."""
        item, rounds = keys.to_json(line.item), len(line.rounds)
        return cls(item, line.estimate, line.stderr, rounds, line.suspect)

    def to_json(self, checked: bool) -> dict[str, Any]:
        """Return a JSON object, with the true count if there was a check."""
        values = asdict(self)
        if not checked:
            del values["true_count"]
        return values
