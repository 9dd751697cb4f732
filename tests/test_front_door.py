"""What a newcomer meets: the import, the README, the command line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import linsketch
from linsketch import Transcript, Utf8Keys
from linsketch.cli import app
from linsketch.sketch.sizing import smallest_size

ROOT = Path(__file__).parents[1]
RUN = CliRunner()


def test_import_is_light() -> None:
    """`import linsketch` loads no compiler, no command line and no data library."""
    code = "import sys, linsketch; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  # ours
    heavy = {
        "numba",
        "llvmlite",
        "typer",
        "rich",
        "wordfreq",
        "matplotlib",
        "polars",
        "flwr",
        "dask",
        "distributed",
        "pandas",
    }
    assert heavy.isdisjoint(output.split())


def test_public_names_are_documented() -> None:
    """Every public name exists and has a docstring."""
    for name in linsketch.__all__:
        if name != "ROOT":  # a constant
            text = getattr(linsketch, name).__doc__ or ""
            assert len(text) > 20
            assert not text.startswith(f"{name}(")  # what a dataclass says by default


@pytest.mark.parametrize(
    "page",
    [
        *("README.md", "docs/architecture.md", "docs/campaigns.md"),
        *("docs/clusters.md", "docs/guide.md"),
    ],
)
def test_examples(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every example runs by itself and prints what it says."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})  # noqa: S102  # our own pages
        said = [line.split("# prints ")[1] for line in block.splitlines() if "# prints " in line]
        assert capsys.readouterr().out.splitlines() == said


def test_readme_scores_are_those_of_the_benchmarks() -> None:
    """The README's table of F1 is the one that `make bench` wrote."""
    page = (ROOT / "docs/benchmarks-campaigns.md").read_text(encoding="utf-8").splitlines()
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    quoted = [line for line in readme if re.match(r"\| \w+_\w+ \| ", line)]
    assert len(quoted) == 8
    assert all(line in page for line in quoted)


def test_the_guides_sizes_are_those_of_the_table() -> None:
    """The guide's table of sizes is what `IBLT.sized` chooses."""
    guide = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
    for keys in (10**2, 10**3, 10**4, 10**5, 10**6):
        sizes = [smallest_size(keys, probability) for probability in (0.01, 0.001)]
        cells = [f"{s.k}, {s.hashing} | {s.cells / keys:.3f}" for s in sizes]
        assert f"| {keys:,} | {cells[0]} | {cells[1]} |" in guide


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "data/README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link to a file of the repository, and to a heading in it, has a target."""
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, heading = target.partition("#")
        if "://" in target:
            continue
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        if heading:
            heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert heading in slugs, target


def test_nothing_leans_on_what_a_clone_lacks() -> None:
    """No page, script or test reads files outside of the repository."""
    for folder in ("docs", "src", "bench", "experiments", "tests", "data"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".json", ".css") and path != Path(__file__):
                assert "../shared" not in path.read_text(encoding="utf-8"), path


def test_demo(tmp_path: Path) -> None:
    """The demo finds the popular words and writes a page; a second demo does so again."""
    for _ in range(2):
        result = RUN.invoke(
            app, ["demo", "--rounds", "5", "--users", "2000", "--out", str(tmp_path)]
        )
        assert result.exit_code == 0, result.output
        assert "the" in result.stdout
        assert "F1" in result.stdout
        assert (tmp_path / "report.html").exists()


def test_demo_json(tmp_path: Path) -> None:
    """--json prints one object, with the truth."""
    result = RUN.invoke(app, ["demo", "--rounds", "30", "--out", str(tmp_path), "--json"])
    report = json.loads(result.stdout)
    assert report["heavy_hitters"][0]["item"] == "the"
    assert report["truth"]["after"]["f1"] > 0.9
    assert len(report["rounds"]) == 30


def test_demo_spares_other_campaigns(tmp_path: Path) -> None:
    """A folder that holds another campaign's transcript is not touched."""
    plan = linsketch.plan_campaign(
        rounds=1, users_per_round=9, items_per_user=1, keys=Utf8Keys(3), seed=b"x", threshold=2
    ).plan
    Transcript.create(tmp_path / "transcript.sqlite", plan).close()
    result = RUN.invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "another plan" in result.stderr
    assert (tmp_path / "transcript.sqlite").exists()


def test_demo_without_a_word_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the demo says in one line what to install."""
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    result = RUN.invoke(app, ["demo"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert ".[demo]" in result.stderr


def test_bad_option() -> None:
    """A number out of range is an error of the user's, exit code 2, not a traceback."""
    result = RUN.invoke(app, ["demo", "--rounds", "0"])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_version() -> None:
    """The command line and the package agree on the version."""
    assert RUN.invoke(app, ["--version"]).output == f"linsketch {linsketch.__version__}\n"
    command = [sys.executable, "-m", "linsketch", "--version"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  # ours
    assert output == f"linsketch {linsketch.__version__}\n"


def test_help_everywhere() -> None:
    """Every command has a help text."""
    for command in app.registered_commands:
        assert command.callback is not None
        result = RUN.invoke(app, [command.callback.__name__.replace("_", "-"), "--help"])
        assert result.exit_code == 0
        assert (command.callback.__doc__ or "?").split()[0] in result.output
