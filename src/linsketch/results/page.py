"""The page: one HTML file that needs no network and no script."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from linsketch.markup import printable
from linsketch.plan import Plan
from linsketch.results.charts import LogScale, Series, chart
from linsketch.results.items import Found
from linsketch.results.outcome import Outcome, RoundFacts
from linsketch.results.score import HeavyTruth, HistogramTruth

_SHOWN = 40  # items drawn; the others are listed below
_TOO_NEAR = 2.0  # standard errors
_LONG = 80  # characters of an item


def page(outcome: Outcome) -> str:
    """Return the page of an outcome."""
    plan = outcome.plan
    style = files("linsketch.results").joinpath("page.css").read_text("utf-8")
    goal = f"{'error' if outcome.is_histogram else 'threshold'} {plan.cutoff:,}"
    closed = f"{len(outcome.rounds)} of {plan.rounds} rounds"
    title = escape(printable(outcome.source or "A campaign"))
    body = [
        f"<h1>{'Histogram' if outcome.is_histogram else 'Heavy hitters'}</h1>",
        f"<p class=lead>{_source(outcome)}{outcome.users:,} users in {closed}, "
        f"method <b>{escape(plan.method.name)}</b>, {goal}. The server saw one sum a round"
        f"{escape(plan.method.also_seen)}.</p>",
        _facts(outcome),
        _failed(outcome),
        *(f"<p class=warning>{escape(warning)}</p>" for warning in outcome.warnings),
        _items(outcome.items, plan.cutoff, outcome.is_histogram, outcome.truth is not None),
        _against_truth(outcome.truth),
        "<h2>Round by round</h2>",
        _rounds(outcome.rounds),
        _privacy(outcome),
        f"<details><summary>Plan {escape(plan.plan_id[:16])}…</summary><dl class=plan>"
        + "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in _flat(plan))
        + "</dl></details>",
    ]
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        "<meta http-equiv=Content-Security-Policy "
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{style}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _flat(plan: Plan) -> list[tuple[str, Any]]:
    """Return the plan's fields, those of the method behind the shared ones."""
    shared = plan.to_json()
    options = shared.pop("method")[plan.method.name]
    return [("method", plan.method.name), *shared.items(), *options.items()]


def _facts(outcome: Outcome) -> str:
    facts = [
        (f"{len(outcome.items):,}", "items found"),
        (f"{outcome.bytes_per_user_round:,}", "bytes a user and round"),
        (f"{outcome.words_per_user_round:,}", "16-bit words"),
        (
            f"{outcome.down_bytes_per_user_round:,}",
            "bytes to a user: the task",
        ),
    ]
    if up := outcome.secure_sum.up_bytes:
        facts.append((f"{up:,}", f"bytes with the secure sum ({outcome.secure_sum.protocol})"))
    truth = outcome.truth
    if isinstance(truth, HistogramTruth):
        facts.append((f"{truth.after.largest_error:,.0f}", "largest error against the truth"))
    elif truth:
        facts.append((f"{truth.after.f1:.3f}", "F1 against the bounded truth"))
        if truth.before.f1 != truth.after.f1:
            facts.append((f"{truth.before.f1:.3f}", "F1 before the bound on items a user"))
    cards = "".join(f"<li><b>{number}</b><span>{what}</span></li>" for number, what in facts)
    return f"<ul class=facts>{cards}</ul>"


def _source(outcome: Outcome) -> str:
    return f"{escape(printable(outcome.source))}: a rehearsal. " if outcome.source else ""


def _failed(outcome: Outcome) -> str:
    if not outcome.failed_rounds:
        return ""
    names = ", ".join(map(str, outcome.failed_rounds))
    how = outcome.failed_as
    return f"<p class=warning>Rounds that did not decode completely: {names}; {how}.</p>"


def _items(found: Sequence[Found], cutoff: int, histogram: bool, checked: bool) -> str:
    if not found:
        return "<p class=warning>No item reached the threshold.</p>"
    drawn = found[:_SHOWN]
    least = drawn[-1].estimate if histogram else min(cutoff, drawn[-1].estimate)
    most = max(line.estimate + 2 * line.stderr for line in drawn)
    scale = LogScale(max(least, 1) / 2, max(1.1 * most, 4))
    grid = "".join(f"<i class=tick style='left:{scale.place(v):.2f}%'></i>" for v in scale.ticks())
    rows = []
    for line in drawn:
        low = scale.place(line.estimate - 2 * line.stderr)
        high = scale.place(line.estimate + 2 * line.stderr)
        marks = f"{grid}<i class=range style='left:{low:.2f}%;width:{high - low:.2f}%'></i>"
        marks += f"<i class=dot style='left:{scale.place(line.estimate):.2f}%'></i>"
        if (true := line.true_count) is not None:
            marks += f"<i class=true style='left:{scale.place(true):.2f}%'></i>"
        if not histogram:
            marks += f"<i class=cut style='left:{scale.place(cutoff):.2f}%'></i>"
        doubtful = not histogram and line.estimate - cutoff < _TOO_NEAR * line.stderr
        rows.append(
            f"<tr{' class=near' if doubtful else ''}><th scope=row>{_name(line.item)}</th>"
            f"<td class=bar><div>{marks}</div></td>"
            f"<td class=number>{line.estimate:,.0f} <small>± {line.stderr:,.0f}</small></td>"
            "</tr>"
        )
    signs = [("dot", "estimate"), ("range", "± 2 standard errors")]
    signs += [] if histogram else [("cut", "threshold")]
    signs += [("true", "true count, after the bound")] if checked else []
    legend = "<p class=legend>"
    legend += " ".join(f"<span><i class={sign}></i>{what}</span>" for sign, what in signs)
    legend += "" if histogram else " <span>Pale: within 2 standard errors of the threshold</span>"
    text = "<h2>Items</h2>" + legend + "</p>"
    labels = "".join(
        f"<span style='left:{scale.place(v):.2f}%'>{v:,g}</span>" for v in scale.ticks()
    )
    axis = f"<tr class=axis><th></th><td class=bar><div>{labels}</div></td><td></td></tr>"
    text += f"<table class=items><tbody>{''.join(rows)}{axis}</tbody></table>"
    if len(found) > _SHOWN:
        rest = "".join(
            f"<li>{_name(line.item)} <small>{line.estimate:,.0f} ± {line.stderr:,.0f}</small></li>"
            for line in found[_SHOWN:]
        )
        text += f"<details><summary>{len(found) - _SHOWN:,} more</summary><ol class=rest "
        text += f"start={_SHOWN + 1}>{rest}</ol></details>"
    return text


def _against_truth(truth: HeavyTruth | HistogramTruth | None) -> str:
    if truth is None:
        return ""
    if isinstance(truth, HistogramTruth):
        within = "within" if truth.after.within_error else "beyond"
        return (
            f"<h2>Against the truth</h2><p>Largest error: {truth.after.largest_error:,.1f}"
            f", {within} the error planned for.</p>"
        )
    scores, same = {"before": truth.before, "after": truth.after}, truth.before == truth.after
    rows = "".join(
        f"<tr><th scope=row>{name} the bound</th><td>{line.precision:.3f}</td>"
        f"<td>{line.recall:.3f}</td><td>{line.f1:.3f}</td><td>{len(line.missed)}</td>"
        f"<td>{len(line.wrong)}</td></tr>"
        for name, line in scores.items()
    )
    heads = "".join(
        f"<th>{name}</th>" for name in ("", "precision", "recall", "F1", "missed", "wrong")
    )
    text = f"<h2>Against the truth</h2><table class=plain><thead><tr>{heads}</tr></thead>"
    text += f"<tbody>{rows}</tbody></table>"
    text += "<p class=small>The bound is that on items a user, which is a bias.</p>"
    for when in ("after",) if same else ("before", "after"):
        for name, items in (("missed", scores[when].missed), ("wrong", scores[when].wrong)):
            if items:
                label = name if same else f"{name} ({when} the bound)"
                text += f"<p><b>{label}:</b> {', '.join(map(_name, items[:_SHOWN]))}"
                text += ", …</p>" if len(items) > _SHOWN else "</p>"
    return text


def _name(item: Any) -> str:
    text = printable(item)
    if not text.strip():
        return f"<i class=empty>{escape(repr(item))}</i>"
    if len(text) > _LONG:
        return f"<span title='{escape(text)}'>{escape(text[:_LONG])}…</span>"
    return escape(text)


def _rounds(lines: Sequence[RoundFacts]) -> str:
    numbers = [line.round for line in lines]
    ts = Series("sampling threshold t", [line.sampling_threshold for line in lines])
    charts = []
    if any(line.capacity for line in lines):
        failed = [line.status != "complete" for line in lines]
        load = Series("keys in the table", [line.estimated_keys for line in lines], marked=failed)
        room = Series("capacity", [line.capacity for line in lines], dashed=True)
        charts.append(chart(numbers, [ts]))
        charts.append(chart(numbers, [load, room], note="hollow: did not decode completely"))
    if any(line.named for line in lines):
        named = Series("items named to users", [line.named for line in lines])
        counted = Series("counted in slots", [line.slots for line in lines], dashed=True)
        charts.append(chart(numbers, [named, counted]))
        part = Series("part of the keys looked at, %", [100 * line.slice for line in lines])
        charts.append(chart(numbers, [part]))
    charts.append(chart(numbers, [Series("bytes a user", [line.bytes for line in lines])]))
    charts.append(chart(numbers, [Series("users", [line.users for line in lines])]))
    names = ("round", "users", "sampling_threshold", "capacity", "cells", "status", "keys")
    heads = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in names)
    rows = "".join(
        f"<tr class={line.status}>"
        + "".join(f"<td>{_number(getattr(line, name))}</td>" for name in names)
        + "</tr>"
        for line in lines
    )
    table = f"<table class=plain><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return (
        f"<div class=charts>{''.join(charts)}</div>"
        f"<details><summary>As a table</summary><div class=wide>{table}</div></details>"
    )


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else escape(value)


def _privacy(outcome: Outcome) -> str:
    error = "Items below the error are left out"
    hidden = error if outcome.is_histogram else outcome.plan.method.left_out
    return (
        f"<p class=small>What this page does not promise: {escape(hidden)} here; the campaign's "
        "transcript lists every sampled item, also one that a single person has, and is to be kept "
        "accordingly. No differential privacy is claimed.</p>"
    )
