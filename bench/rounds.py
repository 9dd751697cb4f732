"""Campaigns of many rounds: the server's time must grow with the rounds, not with their square.

    python bench/rounds.py        half a minute; writes docs/benchmarks-rounds.md

People type one English word each, 500 in a round; the method is slots. The server alone is timed:
opening and closing rounds, and answering at the end.
"""

import platform
import time
from pathlib import Path

import numpy as np

from linsketch import Rehearsal, Server, campaign, plan_campaign
from linsketch.federation.letters import Opening
from linsketch.federation.terms import Terms
from linsketch.methods import Slots
from linsketch.plan import Plan
from linsketch.population.typists import typists
from linsketch.round import RoundSketch, RoundTask, _built
from linsketch.sketch.slots import SlotClass

PAGE = Path(__file__).parents[1] / "docs/benchmarks-rounds.md"
USERS = 500
ROUNDS = (100, 300, 1000)
NAMES = 5000


def setting(rounds: int) -> tuple[Plan, Rehearsal]:
    """Return a plan, and the people that it is for."""
    people = typists(rounds, USERS, b"rounds")
    plan = plan_campaign(
        rounds=rounds,
        users_per_round=int(people.users_in_round.max()),
        items_per_user=1,
        keys=people.keys,
        seed=b"rounds",
        threshold=rounds,
        budget=1000,
    ).plan
    return plan, Rehearsal(people.cohorts())


def watched(rounds: int) -> float:
    """Return the seconds of a whole rehearsal that somebody watches, as commands run it."""
    plan, source = setting(rounds)
    start = time.perf_counter()
    campaign.run(plan, source, watch=lambda _: None)
    return time.perf_counter() - start


def timed(rounds: int) -> dict[str, float]:
    """Return the seconds that a server spends on a campaign, by what it does."""
    plan, source = setting(rounds)
    server = Server(plan)
    seconds = dict.fromkeys(("open", "close", "answer"), 0.0)
    while not server.done:
        start = time.perf_counter()
        task = server.open_round()
        seconds["open"] += time.perf_counter() - start
        (gathered,) = source.gather(plan, iter([task]))
        start = time.perf_counter()
        server.close_round(task, gathered.sums)
        seconds["close"] += time.perf_counter() - start
    start = time.perf_counter()
    assert server.heavy_hitters()
    seconds["answer"] += time.perf_counter() - start
    return seconds


def opening() -> float:
    """Return the milliseconds that a client needs to read and check a task of many names."""
    keys = typists(1, 20, b"x").keys
    plan = Plan(
        rounds=3,
        users_per_round=1000,
        items_per_user=1,
        keys=keys,
        seed=b"names",
        threshold=10,
        budget=60_000,
        method=Slots(slots_from=2),
    )
    terms = Terms.helper(plan, bytes(32))
    names = tuple(f"word {number}" for number in range(NAMES))
    first = Server(plan).open_round()
    table = Slots(slots_from=2).fitting_table(plan, plan.budget, 1.0, 6 * NAMES + 64)
    task = RoundTask(plan.plan_id, 2, 1.0, table, (SlotClass(6, names),))
    text = Opening(task, bytes(16), 1).to_text(terms)
    times = []
    for _ in range(20):
        _built.cache_clear()  # a process of its own has seen no task before
        start = time.process_time()
        read = Opening.from_text(text, terms)
        sketch = RoundSketch.of(plan, read.task)
        assert sketch.context
        times.append(time.process_time() - start)
    assert first.slots == ()
    return 1000 * float(np.min(times))


def main() -> None:
    """Measure and write the page."""
    timed(5)  # compiles
    lines = [
        "| rounds | open, s | close, s | answer, s | a round, ms | whole rehearsal, watched, s |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for rounds in ROUNDS:
        took = timed(rounds)
        each = 1000 * (took["open"] + took["close"]) / rounds
        lines.append(
            f"| {rounds:,} | {took['open']:.2f} | {took['close']:.2f} | {took['answer']:.2f} | "
            f"{each:.2f} | {watched(rounds):.2f} |"
        )
        print(lines[-1], flush=True)
    text = [
        "# Many rounds, measured",
        "",
        "Written by `python bench/rounds.py` (part of `make bench`), "
        f"Python {platform.python_version()}.",
        "",
        f"`slots`, {USERS} users a round, 1,000 bytes each: the time of the server alone, and",
        "that of a whole rehearsal. The target for 1,000 rounds is 10 s for opening them all.",
        "",
        *lines,
        "",
        f"A client reads and checks a task that names {NAMES:,} items in {opening():.1f} ms",
        "of CPU.",
        "",
    ]
    PAGE.write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
