"""`linsketch report`: a campaign's page."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from linsketch.cli.common import Failed, transcript_in


def report(
    transcript: Annotated[
        Path, typer.Argument(help="The transcript of a campaign, or its folder.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; else report.html beside the transcript.")
    ] = None,
    failed_rounds: Failed = "scale",
) -> None:
    """Write the page of a transcript: one HTML file, no network, no script."""
    from linsketch.errors import DataError
    from linsketch.records.transcript import Transcript
    from linsketch.results.folder import write_whole
    from linsketch.results.outcome import outcome_in
    from linsketch.results.page import page

    source = transcript_in(transcript)
    to = out or source.with_name("report.html")
    if to.exists() and not to.read_bytes().lower().startswith(b"<!doctype html"):
        raise DataError(f"{to} is no page; it is not written over.")
    with Transcript(source) as record:
        outcome = outcome_in(record, failed_rounds)
    write_whole(to, page(outcome))
    sys.stdout.write(f"{to}\n")
