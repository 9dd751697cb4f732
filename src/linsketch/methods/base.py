"""What a method is: one object that plans a campaign, opens its rounds and reads its sums.

A method is a frozen dataclass; its fields are its options, which a plan carries as JSON under its
name. Planning fills in what was left open. To add a method, derive a class here and give it a
`name`: it joins when it is defined, and nothing else has to know it (docs/architecture.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Generic, Self, TypeVar

from linsketch.errors import PlanningError, TaskError
from linsketch.history import Estimate, FailedRounds, History, Round, read_sums
from linsketch.plan import METHODS, Brief, Plan, checked_names
from linsketch.rings import Contribution
from linsketch.round import Parts, RoundSketch, RoundTask

H = TypeVar("H", bound=History)


@dataclass(frozen=True)
class Forecast:
    """A plan and what to expect of it.

    `stderr` is that of an item whose true count is the threshold, from sampling alone, at the
    first round's t, where no user has it more than once. `lower_bound_words` is the paper's
    Table 1, without its constants and logarithms.
    """

    plan: Plan
    capacity: int
    cells: int
    bytes_per_user_round: int
    words_per_user_round: int
    decode_failure_probability: float  # of a table that holds as many keys as it is sized for
    stderr: float | None  # None where it depends on the data: out of a sketch, and with slots
    lower_bound_words: float
    notes: dict[str, str] = field(default_factory=dict)  # more that the method tells

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {**asdict(self), "plan": self.plan.to_json(), "plan_id": self.plan.plan_id}


class Method(ABC, Generic[H]):
    """One way to find items. Who runs what: planner, server, client."""

    name: ClassVar[str]
    interactive: ClassVar[bool] = True  # a round's task depends on the rounds before
    uses_mean: ClassVar[bool] = False  # planning asks how many items users have on average
    lists: ClassVar[bool] = True  # False: it only answers about items that it is asked about

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            known = METHODS.get(cls.name, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise PlanningError(f"{known.__qualname__} is the method {cls.name!r} already.")
            METHODS[cls.name] = cls

    @classmethod
    def options(cls) -> list[str]:
        """Return the names of the options that can be chosen; planning fills in the others."""
        return [each.name for each in fields(cls) if not each.metadata.get("planned")]  # type: ignore[arg-type]  # a dataclass

    @classmethod
    def chosen(cls, **options: Any) -> Self:
        """Return the method with options; refuse those that it does not have, or that it plans."""
        if wrong := sorted(set(options) - set(cls.options())):
            has = ", ".join(cls.options()) or "none"
            raise PlanningError(f"{cls.name} has no option {wrong[0]!r} to choose. It has: {has}.")
        return cls(**options)

    def to_json(self) -> dict[str, Any]:
        """Return the options as a JSON object."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]  # a dataclass

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read the options of a plan, all of them."""
        checked_names(data, f"method {cls.name}", {each.name for each in fields(cls)})  # type: ignore[arg-type]  # a dataclass
        return cls(**data)

    def check_plan(self, plan: Plan) -> None:
        """Raise `PlanningError` if planning has not been finished, or cannot be as it is."""

    def for_clients(self) -> Self:
        """Return the method with a bound on all that a server could otherwise ask at will."""
        return self

    # Run by the planner.

    @abstractmethod
    def plan(self, brief: Brief) -> Plan:
        """Choose budget or threshold, and the options that were left open."""

    def forecast(self, plan: Plan) -> Forecast:
        """Say what to expect of a plan."""
        task = self.open(plan, self.history(plan))
        sketch = RoundSketch.of(plan, task)
        counters = sketch.parts.sketch
        items, spread = plan.items_per_round, plan.rounds**0.5 if plan.error else 1.0
        cells = counters.rows * counters.width if counters else 0
        return Forecast(
            plan=plan,
            capacity=task.table.capacity if task.table else 0,
            cells=task.table.size.cells if task.table else cells,
            bytes_per_user_round=sketch.ring.wire_bytes,
            words_per_user_round=sketch.ring.wire_words,
            decode_failure_probability=self.decode_failure_probability,
            stderr=self.stderr(plan),
            lower_bound_words=min(items * spread / plan.cutoff, items),
            notes=self.notes(plan),
        )

    @property
    def decode_failure_probability(self) -> float:
        """How likely a table is not to decode that holds as many keys as it is sized for."""
        return 0.0

    def stderr(self, plan: Plan) -> float | None:
        """Return the standard error of an item at the threshold, if it is known beforehand."""
        return None

    # Run by the server.

    @abstractmethod
    def open(self, plan: Plan, history: H) -> RoundTask:
        """Return the task of the next round, a function of the closed rounds alone."""

    def history(self, plan: Plan) -> H:
        """Return what the server keeps, before the first round."""
        return History(plan)  # type: ignore[return-value]  # for methods that keep no more

    def read(self, plan: Plan, task: RoundTask, sums: Sequence[Contribution]) -> Round:
        """Read the sums of a round, one a group."""
        return read_sums(plan, task, sums)

    def found(self, history: H) -> set[Any]:
        """Return the heavy hitters so far, without their counts."""
        return {line.item for line in self.heavy_hitters(history, "scale", ())}

    @abstractmethod
    def heavy_hitters(
        self, history: H, failed: FailedRounds, candidates: Iterable[Any]
    ) -> list[Estimate]:
        """Return the items that reach the threshold, the largest first."""

    @abstractmethod
    def histogram(
        self, history: H, failed: FailedRounds, candidates: Iterable[Any]
    ) -> list[Estimate]:
        """Return every item that there is a count for, the largest first."""

    # Run by clients and by the server.

    @abstractmethod
    def parts(self, plan: Plan, task: RoundTask) -> Parts:
        """Return what the vectors of a round are made of."""

    @abstractmethod
    def check(self, plan: Plan, task: RoundTask) -> None:
        """Run by a client before it encodes: raise `TaskError` for what the plan does not allow.

        That the bytes fit the budget and the counts fit the table is checked for every method.
        """

    # What it tells people.

    def notes(self, plan: Plan) -> dict[str, str]:
        """Return lines for the table that `linsketch plan` prints."""
        return {}

    def accepted(self, plan: Plan) -> dict[str, str]:
        """Return lines for the table that a client's operator reads before accepting."""
        return {"sampling": self.name, "named to clients": "nothing"}

    def warnings(self, plan: Plan, rounds: Sequence[Round]) -> list[str]:
        """Say what makes the answers of these decoded rounds worth less than they look."""
        return []

    @property
    def also_seen(self) -> str:
        """What the server saw besides a sum a round, as the end of a sentence."""
        return ", nothing else"

    @property
    def left_out(self) -> str:
        """What a list of heavy hitters leaves out."""
        return "Items below the threshold are left out"


def planned(default: Any) -> Any:
    """Return a field that planning fills in."""
    return field(default=default, metadata={"planned": True})


def largest_first(found: Iterable[Estimate]) -> list[Estimate]:
    """Sort estimates."""
    return sorted(found, key=lambda line: (-line.estimate, str(line.item)))


def refuse(when: object, reason: str) -> None:
    """Raise `TaskError` for a reason."""
    if when:
        raise TaskError(reason)
