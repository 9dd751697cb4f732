"""The experiments: real methods, the same numbers whoever computes them."""

from pathlib import Path

import numpy as np
import pytest
from experiments import drawing, fig1, methods
from experiments.cells import Cell, Results, cells_of, compute, f1
from experiments.curves import Point, Setting, points
from experiments.methods import METHODS, Table
from experiments.results import words_for
from experiments.words import DOMAIN, Distribution, draw
from matplotlib import pyplot as plt


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a small word list: a steep distribution over 400 words, and some that do not fit."""
    path = tmp_path_factory.mktemp("words") / "words.tsv"
    rng = np.random.default_rng(1)
    names = sorted({"".join(rng.choice(list("abcdefgh"), 5)) for _ in range(600)})
    lines = [f"{name}\t{10_000 // (rank + 1) + 1}" for rank, name in enumerate(names)]
    path.write_text("\n".join([*lines, "ab\t99999", "a+b\t99999"]) + "\n")
    return str(path)


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
    assert not np.array_equal(draw(words, 1000, 1)[0].keys, draw(words, 1000, 0)[0].keys)


def test_f1() -> None:
    """F1 of nothing found where there is nothing is 1."""
    yes, no = np.array([True, False]), np.array([False, False])
    assert (f1(yes, yes), f1(yes, no), f1(no, no)) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize("number", range(len(METHODS)))
def test_methods_with_plenty_of_words_are_exact_or_close(words: str, number: int) -> None:
    """With far more words than needed every method finds nearly everything."""
    method = METHODS[number]
    threshold = 50 if method.per_threshold else 0
    scores = compute(words, Cell(number, 1000, 60_000, 0, 10, threshold))
    coarse = isinstance(method, Table) and isinstance(method.t, float) and method.t > 5
    assert scores[10, 50] > (0.4 if coarse else 0.85)
    if isinstance(method, Table) and method.t == "unsampled":
        assert scores[10, 50] == 1.0


def test_the_paper_counts_eight_words_a_key() -> None:
    """C words pay for C / 8 keys as the paper counts, and for more at the true size."""
    counted = Table("", "paper", methods.PAPER_WORDS, 1.0).table(10_000, 8_000, 1.0)
    true = Table("", "paper", None, 1.0).table(10_000, 8_000, 1.0)
    compact = Table("", "compact", None, 1.0).table(10_000, 8_000, 1.0)
    assert counted is not None
    assert true is not None
    assert compact is not None
    assert counted[1] == 1000
    assert 1250 < true[1] < 1400
    assert 2400 < compact[1] < 2600


def test_workers_and_interruptions_change_nothing(words: str, tmp_path: Path) -> None:
    """One worker or two, at once or in two goes, half a line lost: the same numbers."""
    compact = next(i for i, m in enumerate(METHODS) if m.name == "compact, adaptive")
    cells = list(cells_of(compact, [500], [100, 300], 2, 10))
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
    """A curve of several methods has the best of them at every size."""
    name = "IBLT, best fixed t"
    setting = Setting((400, 4_000), 10, runs=1, means=(500,), thresholds=(50,))
    found = points(Results(tmp_path, words), setting, (10,), 1, [name])
    singles = [
        compute(words, Cell(i, 500, 4_000, 0, 10, 0))[10, 50]
        for i, method in enumerate(METHODS)
        if method.name == name
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
