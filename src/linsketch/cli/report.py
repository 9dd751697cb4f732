"""`linsketch report`: a campaign's page."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from linsketch.cli.common import Failed, write_whole


def report(
    transcript: Annotated[Path, typer.Argument(help="The transcript of a campaign.")],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; else report.html beside the transcript.")
    ] = None,
    failed_rounds: Failed = "scale",
) -> None:
    """Write the page of a transcript: one HTML file, no network, no script."""
    from linsketch.report.outcome import outcome
    from linsketch.report.page import page
    from linsketch.transcript import Transcript

    with Transcript(transcript) as record:
        result = outcome(record, failed_rounds)
    to = out or transcript.with_name("report.html")
    write_whole(to, page(result))
    sys.stdout.write(f"{to}\n")
