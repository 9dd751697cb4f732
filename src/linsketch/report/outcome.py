"""A campaign's outcome as one JSON object: what `--json` prints and the page draws."""

import math
from collections.abc import Mapping
from typing import Any

from linsketch.keys import BytesKeys
from linsketch.plan import Plan, sampling_variance
from linsketch.server import Estimate, FailedRounds, Round, Server
from linsketch.transcript import Transcript


def outcome(
    transcript: Transcript,
    failed: FailedRounds,
    server: Server | None = None,
    *,
    everything: bool = False,
    check: bool = True,
) -> dict[str, Any]:
    """Return all that can be said of a campaign, from its transcript alone.

    Items below the threshold, or below a histogram's error, are left out unless `everything` is
    asked for: a single person may have them. `check` compares with the truth, if it is known.
    """
    server = server or transcript.server()
    plan = transcript.plan
    candidates = [_as_item(plan, text) for text in transcript.fact("candidates") or ()]
    name = "heavy_hitters" if plan.error is None else "histogram"
    answer = server.heavy_hitters if plan.error is None else server.histogram
    found = [_estimate(line) for line in answer(failed, candidates)]
    result: dict[str, Any] = {
        "source": transcript.fact("source"),
        "plan": plan.to_json(),
        "plan_id": plan.plan_id,
        "bytes_per_user_round": max((r.wire_bytes for r in server.rounds), default=0),
        "words_per_user_round": max((r.wire_words for r in server.rounds), default=0),
        "down_bytes_per_user_round": max((r.down_bytes for r in server.rounds), default=0),
        "down_words_per_user_round": max((-(-r.down_bytes // 2) for r in server.rounds), default=0),
        "secure_sum": {
            **(transcript.fact("secure_sum") or {}),
            **(transcript.fact("secure_sum_bytes") or {}),
        },
        "failed_rounds": {"rounds": server.failed_rounds, "counted_as": failed},
        "warnings": _warnings(plan, server, transcript.fact("secure_sum") or {}),
        "rounds": [round_facts(closed) for closed in server.rounds],
        name: found,
    }
    truth = transcript.fact("truth") if check else None
    if truth:
        result["truth"] = score(plan, found, truth)
    if everything:
        result[name] = [_estimate(line) for line in server.histogram(failed, candidates)]
    elif plan.error is not None:
        result[name] = [line for line in found if line["estimate"] >= plan.error]
    if truth:
        counts = dict(map(tuple, truth["after"]))
        for line in result[name]:
            line["true_count"] = counts.get(line["item"])
    return result


def _warnings(plan: Plan, server: Server, secure: dict[str, Any]) -> list[str]:
    """Say what makes the numbers worth less than they look."""
    warnings = []
    if not server.done:
        warnings.append(
            f"{len(server.rounds)} of {plan.rounds} rounds are closed: counts are of their users."
        )
    if secure.get("dropout"):
        users = sum(closed.users for closed in server.rounds)
        warnings.append(
            f"Users dropped out: counts are of the {users:,} who took part, a truth is of all."
        )
    aborted = [closed.task.round for closed in server.rounds if closed.failure]
    if aborted:
        warnings.append(
            f"Rounds without a sum: {', '.join(map(str, aborted))}; their users are not counted."
        )
    decoded = [closed for closed in server.rounds if closed.task.round not in server.failed_rounds]
    if server.rounds and not decoded:
        advice = "" if len(aborted) == len(server.rounds) else " Raise the budget."
        warnings.append(f"No round decoded, so nothing can be said.{advice}")
    elif plan.error is None and plan.repetitions and decoded:
        ts = [closed.task.sampling_threshold for closed in decoded]
        variance = sum(sampling_variance(t, plan.sampling) for t in ts) / len(ts)
        stderr = math.sqrt(plan.cut * variance / plan.repetitions)
        if plan.method != "proven" and stderr > plan.cut / 2:
            warnings.append(
                f"An item at the threshold of {plan.cut:,} has a standard error of {stderr:,.0f}: "
                "near the threshold the list is noise. Raise the threshold or the budget."
            )
    return warnings


def round_facts(closed: Round) -> dict[str, Any]:
    """Return what is said of a closed round."""
    table = closed.task.table
    return {
        "round": closed.task.round,
        "users": closed.users,
        "sampling_threshold": closed.task.sampling_threshold,
        "capacity": table.capacity if table else 0,
        "cells": table.size.cells if table else 0,
        "status": closed.status,
        "keys": closed.keys,
        "estimated_keys": round(closed.estimated_keys, 1),
        "at_least": closed.at_least,
        "bytes": closed.wire_bytes,
        "down_bytes": closed.down_bytes,
        "named": sum(len(each.items) for each in closed.task.slots),
        "slots": sum(len(each.items) for each in closed.task.slots if each.bits),
        "slice": closed.task.slice.width / 2**32 if closed.task.slice else 1.0,
    }


def _estimate(found: Estimate) -> dict[str, Any]:
    return {
        "item": shown(found.item),
        "estimate": found.estimate,
        "stderr": found.stderr,
        "rounds": len(found.rounds),
        "suspect": found.suspect,
    }


def shown(item: Any) -> Any:
    """Return an item as JSON has it: bytes in hex."""
    return item.hex() if isinstance(item, bytes) else item


def printable(text: object) -> str:
    """Return a text without control characters: items come from strangers' devices."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def _as_item(plan: Plan, text: Any) -> Any:
    """Undo `shown`."""
    return bytes.fromhex(text) if isinstance(plan.keys, BytesKeys) else text


def truth_of(
    before: Mapping[Any, int], after: Mapping[Any, int], cut: int
) -> dict[str, list[list[Any]]]:
    """Return what a check needs to know of the truth before and after the bound on items.

    For heavy hitters that is the items at a tenth of the cut or above, for a histogram (`cut` 0)
    all of them.
    """
    return {
        name: [[shown(item), int(count)] for item, count in totals.items() if 10 * count >= cut]
        for name, totals in (("before", before), ("after", after))
    }


def score(plan: Plan, found: list[dict[str, Any]], truth: Mapping[str, Any]) -> dict[str, Any]:
    """Compare what was found with the truth, before and after the bound on items a user."""
    scorer = _heavy_score if plan.error is None else _histogram_score
    return {name: scorer(found, dict(map(tuple, truth[name])), plan.cut) for name in truth}


def _heavy_score(found: list[dict[str, Any]], totals: dict[Any, int], cut: int) -> dict[str, Any]:
    listed = {line["item"] for line in found}
    heavy = {item for item, count in totals.items() if count >= cut}
    right = len(listed & heavy)
    return {
        "precision": right / len(listed) if listed else 1.0,
        "recall": right / len(heavy) if heavy else 1.0,
        "f1": 2 * right / (len(listed) + len(heavy)) if listed or heavy else 1.0,
        "missed": sorted(heavy - listed, key=lambda item: (-totals[item], str(item))),
        "wrong": [line["item"] for line in found if line["item"] not in heavy],
    }


def _histogram_score(
    found: list[dict[str, Any]], totals: dict[Any, int], error: int
) -> dict[str, Any]:
    estimates = {line["item"]: line["estimate"] for line in found}
    largest = max(
        (
            abs(estimates.get(item, 0.0) - totals.get(item, 0))
            for item in estimates.keys() | totals.keys()
        ),
        default=0.0,
    )
    return {"largest_error": largest, "within_error": largest <= error}
