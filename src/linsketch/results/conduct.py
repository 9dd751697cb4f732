"""One host for all campaigns: transcript, journal, progress and report, in a folder."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from linsketch import campaign
from linsketch.campaign import Source
from linsketch.errors import DataError, TranscriptError
from linsketch.history import FailedRounds
from linsketch.plan import Plan
from linsketch.records.transcript import Transcript
from linsketch.results.folder import TRANSCRIPT, write_outcome
from linsketch.results.journal import Journal
from linsketch.results.outcome import Outcome, outcome_in

try:
    import fcntl
except ImportError:  # not on this platform: nothing keeps a second run out
    fcntl = None  # type: ignore[assignment]

_OTHER = {"data": "from other data", "secure_sum": "with another secure sum"}


def conduct(
    folder: Path,
    plan: Plan,
    source: Callable[[Transcript], Source],
    *,
    bound_to: Mapping[str, Any],
    facts: Callable[[], Mapping[str, Any]] = dict,
    log: Path | None = None,
    say: Callable[[str, int], None] = lambda _, __: None,
    failed: FailedRounds = "scale",
    truth: Callable[[], Any] | None = None,
    weights: Callable[[], Mapping[str, int]] = dict,
    on_failure: Callable[[Outcome], None] = lambda _: None,
) -> Outcome:
    """Run what is left of a campaign; write what came out beside its transcript.

    A campaign that cannot go on leaves the outcome of its closed rounds, and tells `on_failure` of
    it. A transcript with other facts than `bound_to` is refused; `facts` are more that a new one
    keeps. `say` is given lines, and how many rounds are closed. `truth` is asked for once, at the
    end, and kept; `weights` are the bytes of the secure sum.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder), _opened(folder, plan, bound_to, facts) as transcript:
        if transcript.closed:
            done = transcript.closed == plan.rounds
            going = f"Going on after round {transcript.closed} of {plan.rounds}."
            say("All rounds are closed already." if done else going, transcript.closed)
        journal = Journal(log)
        try:
            server = campaign.run(
                plan,
                source(transcript),
                transcript=transcript,
                watch=lambda progress: say(journal.line(progress), progress.closed.task.round),
            )
        except TranscriptError:
            raise  # the disk will take no page either
        except Exception:
            if transcript.closed:
                known = outcome_in(transcript, failed, check=False)
                write_outcome(folder, known)
                on_failure(known)
            raise
        if weighed := weights():
            transcript.keep_fact("secure_sum_bytes", weighed)
        if truth and not transcript.fact("truth"):
            transcript.keep_fact("truth", truth())
        outcome = outcome_in(transcript, failed, server, check=truth is not None)
    write_outcome(folder, outcome)
    return outcome


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a second run of the campaign out while this one goes on."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            if fcntl:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"Another run is at work in {folder}.") from None
        except OSError:
            pass  # a file system without locks: the transcript still refuses a round twice
        yield
    finally:
        os.close(handle)


def _opened(
    folder: Path,
    plan: Plan,
    bound_to: Mapping[str, Any],
    facts: Callable[[], Mapping[str, Any]],
) -> Transcript:
    """Return the folder's transcript of this campaign, a new one if there is none."""
    path = folder / TRANSCRIPT
    if not path.exists():
        for name in ("report.html", "result.json"):
            if (folder / name).exists():
                raise DataError(f"{folder} holds a {name} of something else. Take another --out.")
        return Transcript.create(path, plan, {**bound_to, **facts()})
    transcript = Transcript(path)
    if transcript.plan != plan:
        raise DataError(
            f"{path} belongs to another plan ({transcript.plan.plan_id[:12]}, not "
            f"{plan.plan_id[:12]}). Take another folder with --out."
        )
    for name, value in bound_to.items():
        if transcript.fact(name) != value:
            how = _OTHER.get(name, f"with another {name}")
            raise DataError(f"{path} was made {how}. Take another folder with --out.")
    return transcript
