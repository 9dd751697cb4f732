"""The page: self-contained, safe, and drawn by a real browser."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from linsketch import Clients, Outcome, Rehearsal, Transcript, Utf8Keys, campaign, plan_campaign
from linsketch.results.charts import LogScale, ticks
from linsketch.results.outcome import outcome_in
from linsketch.results.page import page

EVIL = "<script>alert(1)</script>"
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Return an outcome with awkward items and a truth."""
    plan = plan_campaign(
        rounds=3,
        users_per_round=20,
        items_per_user=40,
        keys=Utf8Keys(30),
        seed=b"page",
        threshold=30,
        method="unsampled",
    ).plan
    own = {EVIL: 2, "": 3, "naïve 🙂": 4, "a'b\"c&amp;": 5, "rare": 1} | {
        f"w{i}": 2 for i in range(9)
    }
    path = tmp_path_factory.mktemp("page") / "t.sqlite"
    with Transcript.create(path, plan) as transcript:
        campaign.run(plan, Rehearsal([Clients([own] * 20)] * 3), transcript=transcript)
        truth = [[item, 60 * count] for item, count in own.items()]
        transcript.keep_fact("truth", {"before": truth, "after": truth})
        return outcome_in(transcript)


class Reader(HTMLParser):
    """Collects tags and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_is_self_contained_and_safe(result: Outcome) -> None:
    """No address, no script, no foreign tag, whatever the items are called."""
    text = page(result)
    reader = Reader()
    reader.feed(text)
    assert reader.addresses == []
    assert "script" not in reader.tags
    assert EVIL not in text
    assert "&lt;script&gt;" in text
    assert "http" not in text.replace("http-equiv", "")
    assert "default-src 'none'" in text


def test_the_page_says_what_came_out(result: Outcome) -> None:
    """Items with errors, bytes, rounds, truth and the plan are on it."""
    text = page(result)
    assert "naïve 🙂" in text
    assert f"{result.bytes_per_user_round:,}" in text
    assert text.count("<svg") == 4
    assert "Against the truth" in text
    assert result.plan.plan_id[:16] in text
    assert "No differential privacy is claimed" in text.replace("\n", " ")


def test_nothing_found_is_said(result: Outcome) -> None:
    """A campaign without heavy hitters, or without rounds, has a page too."""
    none = replace(result, items=(), rounds=(), failed_rounds=(2,), counted_as="zero")
    text = page(none)
    assert "No item reached the threshold" in text
    assert "count as zero" in text


@pytest.mark.parametrize("most", [0.3, 1, 7, 83, 999, 12_345, 10**7])
def test_axes(most: float) -> None:
    """Axes reach the largest value with a handful of round numbers."""
    marks = ticks(most)
    assert marks[0] == 0
    assert marks[-1] >= most * 0.999
    assert 3 <= len(marks) <= 8
    scale = LogScale(most / 50, most)
    assert scale.place(0) == 0
    assert scale.place(most * 2) == 100
    assert all(0 <= scale.place(mark) <= 100 for mark in scale.ticks())


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here: apt install chromium")
@pytest.mark.parametrize("width", [500, 1200])
def test_in_a_browser(result: Outcome, tmp_path: Path, width: int) -> None:
    """A browser without network draws it, on narrow and wide screens, nothing sticking out."""
    assert CHROMIUM is not None
    file = tmp_path / "page.html"
    probe = "<script>document.title=[innerWidth,document.documentElement.scrollWidth,"
    probe += "document.querySelectorAll('.items tr').length].join(' ')</script></body>"
    text = re.sub(r"<meta http-equiv=Content-Security-Policy [^>]*>", "", page(result))
    file.write_text(text.replace("</body>", probe), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-quic"]
    flags += [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},1500"]

    def browse(*more: str) -> str:
        command = [CHROMIUM or "", *flags, *more, f"file://{file}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)  # noqa: S603  # ours
        return done.stdout

    found = re.search(r"<title>(\d+) (\d+) (\d+)</title>", browse("--dump-dom"))
    assert found is not None
    inner, scroll, rows = map(int, found.groups())
    assert inner == width
    assert scroll <= inner
    assert rows == 14 + 1  # items, axis
    shot = tmp_path / "page.png"
    browse(f"--screenshot={shot}")
    assert shot.read_bytes().startswith(b"\x89PNG")
    assert shot.stat().st_size > 10_000


ALLOWED = {"p", "b", "table", "thead", "tbody", "tr", "th", "td"}


def test_in_a_notebook(result: Outcome) -> None:
    """Outcomes, servers and peels show themselves as tables, whatever the items are called."""
    server = campaign.run(result.plan, Rehearsal([Clients([{EVIL: 2, "tea": 40}] * 20)] * 3))
    peel = server.rounds[0].peels[0]
    for shown in (result, server, peel):
        text = shown._repr_html_()
        reader = Reader()
        reader.feed(text)
        assert {"table", "tr", "td"} <= reader.tags <= ALLOWED
        assert EVIL not in text
    assert "3 of 3 rounds" in server._repr_html_()
    assert "Every key was listed" in peel._repr_html_()
    assert "60 users in 3 of 3 rounds" in result._repr_html_()
