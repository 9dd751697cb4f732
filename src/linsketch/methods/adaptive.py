"""Algorithm 4: the sampling threshold follows from the round before."""

from dataclasses import dataclass, replace
from typing import Self

from linsketch.errors import PlanningError
from linsketch.methods.listing import ListedSums
from linsketch.methods.practical import Practical
from linsketch.plan import Plan
from linsketch.sampling import MAX_THRESHOLD, on_grid

LARGEST_T_CHANGE = 4.0


def halfway(t: float, capacity: int, keys: float) -> float:
    """Go half of the way to the t that would have filled the table (section 7).

    The paper divides by the budget in words; the capacity in keys is what it must be.
    """
    return 0.5 * t + 0.5 * t * keys / capacity


@dataclass(frozen=True, kw_only=True)
class Adaptive(Practical):
    """t goes halfway to what would have filled the last table; override `update` for another rule.

    With `largest_t_change`, t stays below that many times the first t, and t - 1 above as small a
    part of it: so a server cannot switch off what the plan samples, and clients refuse if it
    tries.
    """

    name = "adaptive"
    interactive = True

    largest_t_change: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        change = self.largest_t_change
        if change is not None:
            number = isinstance(change, int | float) and not isinstance(change, bool)
            if not number or not 1 <= change <= MAX_THRESHOLD:
                raise PlanningError(
                    f"largest_t_change is a factor from 1 to {MAX_THRESHOLD:,}, not {change!r}."
                )
            object.__setattr__(self, "largest_t_change", float(change))

    def for_clients(self) -> Self:
        """Bound how far t may go, unless the plan does so already."""
        return replace(self, largest_t_change=self.largest_t_change or LARGEST_T_CHANGE)

    def update(self, t: float, capacity: int, keys: float) -> float:
        """Return the next t, given the capacity and the keys of the last round's table."""
        return halfway(t, capacity, keys)

    def next_t(self, plan: Plan, history: ListedSums) -> float:
        """Return the t of the next round; a round without a sum changes nothing."""
        if not history.rounds:
            return self.sampling_threshold
        last = history.rounds[-1]
        t = last.task.sampling_threshold
        if last.task.table and last.peels:
            t = self.update(t, last.task.table.capacity, last.estimated_keys)
        low, high = self.t_range(plan)
        return on_grid(min(max(t, low), high))

    def t_range(self, plan: Plan) -> tuple[float, float]:
        """Return between which thresholds rounds may sample."""
        t, change = self.sampling_threshold, self.largest_t_change
        most = self.largest_t(plan)
        if change is None:
            return 1.0, most
        return on_grid(1 + (t - 1) / change), on_grid(min(t * change, most))

    def accepted(self, plan: Plan) -> dict[str, str]:
        """Say between which t clients sample."""
        low, high = self.t_range(plan)
        return {**super().accepted(plan), "sampling": f"adaptive, t from {low:.3g} to {high:.3g}"}
