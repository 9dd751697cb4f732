"""`linsketch inspect`: what a transcript holds."""

from pathlib import Path
from typing import Annotated

import typer

from linsketch.cli.common import AsJson, Failed, print_json, transcript_in


def inspect(
    transcript: Annotated[
        Path, typer.Argument(help="The transcript of a campaign, or its folder.")
    ],
    failed_rounds: Failed = "scale",
    below_threshold: Annotated[
        bool,
        typer.Option("--all", help="Also items below the threshold: they may be one person's."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Decode a transcript again, from the file alone, and show what comes out.

    Transcripts are sensitive: they list every sampled item, also one that a single person has.
    """
    from linsketch.cli.show import show
    from linsketch.records.transcript import Transcript
    from linsketch.results.outcome import outcome_in

    with Transcript(transcript_in(transcript)) as record:
        outcome = outcome_in(record, failed_rounds, everything=below_threshold)
    if as_json:
        print_json(outcome.to_json())
    else:
        show(outcome, lines=10**9 if below_threshold else 20)
