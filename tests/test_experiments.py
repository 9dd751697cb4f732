"""The experiments: real methods, the same numbers whoever computes them."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments import drawing, fig1
from experiments.__main__ import WORDS, main
from experiments.cells import Cell, Results, cells_of, compute, f1
from experiments.curves import Area, Point, points
from experiments.drawn import DOMAIN, KEYS, Distribution, draw
from experiments.methods import ENTRIES, Entry, PaperConstant, estimates
from experiments.results import words_for
from matplotlib import pyplot as plt

from linsketch import Plan, Server
from linsketch.history import History
from linsketch.methods import Adaptive

MSWEB = WORDS.with_name("msweb_visits.csv.gz")


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a small word list: a steep distribution over 400 words, and some that do not fit."""
    path = tmp_path_factory.mktemp("words") / "words.tsv"
    rng = np.random.default_rng(1)
    names = sorted({"".join(rng.choice(list("abcdefgh"), 5)) for _ in range(600)})
    lines = [f"{name}\t{10_000 // (rank + 1) + 1}" for rank, name in enumerate(names)]
    path.write_text("\n".join([*lines, "ab\t99999", "a+b\t99999"]) + "\n")
    return str(path)


def entry_named(name: str) -> int:
    """Return the place of the first entry of a curve."""
    return next(i for i, entry in enumerate(ENTRIES) if entry.name == name)


def test_words_are_cut_to_three_characters(words: str) -> None:
    """Words with fewer characters, or others than the paper's, are left out."""
    distribution = Distribution.read(Path(words))
    assert len(distribution.items) <= 8**3
    assert distribution.cumulative[-1] == 1.0
    assert (distribution.items < len(DOMAIN)).all()


def test_draws(words: str) -> None:
    """M_r has mean M and standard deviation M / 10; users have what they are said to have."""
    sizes = [int(data.counts.sum()) for data in draw(words, 1000, 0)]
    assert abs(np.mean(sizes) - 1000) < 55
    assert 70 < np.std(sizes) < 140
    again = draw.__wrapped__(words, 1000, 0)
    assert all(
        np.array_equal(a.keys, b.keys) and np.array_equal(a.states, b.states)
        for a, b in zip(draw(words, 1000, 0), again, strict=True)
    )
    busy = draw(words, 1000, 0, 50)[0]
    assert busy.counts.max() > 1
    assert busy.users == -(-int(busy.counts.sum()) // 50)
    assert busy.histogram().sum() == busy.counts.sum()
    assert not np.array_equal(draw(words, 1000, 1)[0].keys, draw(words, 1000, 0)[0].keys)


def test_f1() -> None:
    """F1 of nothing found where there is nothing is 1."""
    yes, no = np.array([True, False]), np.array([False, False])
    assert (f1(yes, yes), f1(yes, no), f1(no, no)) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize("number", range(len(ENTRIES)))
def test_entries_with_plenty_of_words_are_exact_or_close(words: str, number: int) -> None:
    """With far more words than needed every entry finds nearly everything."""
    entry = ENTRIES[number]
    threshold = 50 if entry.per_threshold else 0
    scores = compute(words, Cell(number, 1000, 60_000, 0, 10, threshold))
    t = entry.method.sampling_threshold if isinstance(entry.method, PaperConstant) else 0.0
    assert scores[10, 50] > (0.4 if t > 5 else 0.85)
    if t == 1:
        assert scores[10, 50] == 1.0


@pytest.mark.parametrize("items_per_user", [1, 50])
@pytest.mark.parametrize(
    "entry", {entry.name: entry for entry in ENTRIES}.values(), ids=lambda entry: entry.name
)
def test_plans_hold_what_is_drawn(words: str, entry: Entry, items_per_user: int) -> None:
    """All that users have fits into the plan, and the vectors into its budget."""
    plan = entry.plan(3, 1000, 400, 50, items_per_user)
    assert plan.items_per_round == 1500
    assert Plan.from_json(plan.to_json()) == plan
    server = Server(plan)
    for data in draw(words, 1000, 0, items_per_user)[:3]:
        task = server.open_round()
        closed = server.close_round(task, [data.contribution(plan, task)])
        assert closed.users == data.users
        assert closed.wire_bytes <= plan.budget
    some = server.histogram(entry.failed, KEYS.decode(DOMAIN[::500]))[:5]
    places = KEYS.encode(line.item for line in some).keys[:, 0]
    expected = [line.estimate for line in some]
    assert estimates(server, entry.failed)[places].tolist() == expected


def test_an_unknown_history_is_asked_by_its_method(words: str) -> None:
    """A method that keeps something else is scored by what it answers."""
    entry = ENTRIES[entry_named("compact, adaptive")]
    server = Server(entry.plan(1, 1000, 4_000, 50))
    task = server.open_round()
    server.close_round(task, [draw(words, 1000, 0)[0].contribution(server.plan, task)])
    known = estimates(server, "zero")
    lines = server.histogram("zero")
    server.history = History(server.plan)
    server.histogram = lambda *_: lines  # type: ignore[method-assign]
    assert known.sum() > 0
    assert np.array_equal(estimates(server, "zero"), known)


def test_words_that_pay_for_nothing_find_nothing(words: str) -> None:
    """Where no table fits, F1 is 0."""
    for name in ("slots and slices", "IBLT, adaptive", "compact, adaptive"):
        assert compute(words, Cell(entry_named(name), 1000, 4, 0, 10, 50)) == {(10, 50): 0.0}


def test_the_paper_counts_eight_words_a_key() -> None:
    """C words pay for C / 8 keys as the paper counts, and for more at the true size."""
    entry = Entry("", PaperConstant())
    methods = (PaperConstant(), Adaptive(layout="paper"), Adaptive())
    plans = [replace(entry, method=method).plan(10, 10_000, 8_000, 50) for method in methods]
    counted, true, compact = (
        plan.method.fitting_table(plan, plan.budget, 1.0).capacity  # type: ignore[attr-defined]
        for plan in plans
    )
    assert counted == 1000
    assert 1250 < true < 1400
    assert 2400 < compact < 2600


def test_shared_hashes_are_shared(words: str) -> None:
    """The same users give the same vector in every round, and another with fresh hashes."""
    data = draw(words, 1000, 0)[0]
    for name, same in (
        ("count-median, shared hashes", True),
        ("count-median, fresh hashes", False),
    ):
        plan = ENTRIES[entry_named(name)].plan(2, 1000, 400, 50)
        one, two = (data.contribution(plan, task).vector for task in Server(plan).open_rounds())
        assert np.array_equal(one.arrays[0], two.arrays[0]) == same


def test_workers_and_interruptions_change_nothing(words: str, tmp_path: Path) -> None:
    """One worker or two, at once or in two goes, half a line lost: the same numbers."""
    cells = list(cells_of(entry_named("compact, adaptive"), [500], [100, 300], 2, 10))
    one, two = Results(tmp_path / "1", words), Results(tmp_path / "2", words)
    one.finish(cells, 1)
    two.finish(cells[:3], 2)
    lines = two.path.read_text().splitlines(keepends=True)
    two.path.write_text("".join(lines[:2]) + lines[2][:20])
    again = Results(tmp_path / "2", words)
    again.finish(cells, 2)
    assert [one.scores(cell) for cell in cells] == [again.scores(cell) for cell in cells]
    assert [compute(words, cell) for cell in cells] == [one.scores(cell) for cell in cells]


def test_points_take_the_best_of_a_name(words: str, tmp_path: Path) -> None:
    """A curve of several entries has the best of them at every size."""
    name = "IBLT, best fixed t"
    area = Area((400, 4_000), 10, runs=1, means=(500,), thresholds=(50,))
    found = points(Results(tmp_path, words), area, (10,), 1, [name])
    singles = [
        compute(words, Cell(i, 500, 4_000, 0, 10, 0))[10, 50]
        for i, entry in enumerate(ENTRIES)
        if entry.name == name
    ]
    assert [point.words for point in found] == [400, 4_000]
    assert found[1].f1 == max(singles)
    drawing.write_csv(tmp_path / "a.csv", found)
    _, axes = plt.subplots()
    drawing.draw_curves(axes, found, lambda point: point.words)
    drawing.save(tmp_path / "a", "title", "caption")
    assert {"a.csv", "a.png", "a.svg"} <= {path.name for path in tmp_path.iterdir()}
    assert fig1.SIZES[0] == 100


def test_words_for_a_level() -> None:
    """Between sizes the curve is straight in log C; what is never reached is None."""
    curve = [
        Point("a", 30, 50, 1, words, score, 0.0) for words, score in ((100, 0.5), (10_000, 0.9))
    ]
    assert words_for(curve, 0.7) == pytest.approx(1000)
    assert words_for(curve, 0.5) == 100
    assert words_for(curve, 0.95) is None


def run_main(*arguments: object) -> int:
    """Run `python -m experiments` and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def try_msweb(*options: object) -> int:
    """Run `python -m experiments try` on visits of a web site."""
    return run_main("try", MSWEB, "--user", "user", "--item", "url", *options)


def test_trying_methods_on_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each method and budget; the threshold is the 50th most popular item's count."""
    chosen = [f"--method={name}" for name in ("slots", "adaptive", "count-median", "proven")]
    assert not try_msweb(*chosen, "--budget=2000", "--budget=6000", "--rounds=5", "--seeds=1")
    out = capsys.readouterr().out
    assert "32,711 users, 285 items, threshold 323" in out
    lines = [re.split(" {2,}", line, maxsplit=3) for line in out.splitlines()[2:]]
    assert [line[:2] for line in lines] == [
        [name, budget]
        for budget in ("2,000", "6,000")
        for name in ("slots", "adaptive", "count-median", "proven")
    ]
    scores = {(name, budget): score for name, budget, score, _ in lines}
    assert float(scores["slots", "6,000"]) > 0.9
    assert float(scores["adaptive", "6,000"]) > float(scores["adaptive", "2,000"]) > 0.5
    assert scores["proven", "6,000"] == "–"
    assert "too small to prove" in out
    assert re.search(r"slots +6,000 .* [0-9],[0-9]{3} .* [0-5]\.0 of 5\n", out)


def test_trying_without_options_takes_every_method_of_the_package(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each plans for itself; with plenty of bytes all find the items."""
    path = tmp_path / "few.csv"
    path.write_text("who,what\n" + "".join(f"{n},{n % 7 % 3}\n" for n in range(200)))
    options = ("--user=who", "--item=what", "--rounds=2", "--threshold=20", "--seeds=2")
    assert not run_main("try", path, *options)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    names = {"slots", "adaptive", "fixed", "unsampled", "count-median", "proven"}
    assert {line[0] for line in lines} == names
    assert {line[2] for line in lines} == {"1.000"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--budget=1"], "too small"),
        (["--method=none"], "no method 'none'"),
        (["--threshold=100000"], "No item reaches 100,000"),
        (["--threshold=0"], "threshold"),
        (["--rounds=0"], "rounds"),
        (["--count=none"], "no column 'none'"),
    ],
)
def test_what_cannot_be_tried_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], options: list[str], reason: str
) -> None:
    """Bad input: nothing on stdout, one line on stderr, exit 2."""
    assert try_msweb(*options) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert err.startswith("Error: ")
    assert reason in err


def test_figures_are_still_a_command(words: str, tmp_path: Path) -> None:
    """A figure leaves its picture and its data; an unknown one is refused."""
    arguments = ("--words", words, "--out", tmp_path, "--runs=1", "--workers=2")
    assert not run_main("drift", *arguments)
    assert {"drift.csv", "drift.png", "drift.svg"} <= {path.name for path in tmp_path.iterdir()}
    assert run_main("fig9", *arguments) == 2
    assert Distribution.read(WORDS).digest == "1a9acfe20b05"
