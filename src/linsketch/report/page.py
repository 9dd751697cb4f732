"""The page: one HTML file that needs no network and no script."""

from html import escape
from importlib.resources import files
from typing import Any

from linsketch.report.charts import LogScale, Series, chart
from linsketch.report.outcome import printable

_SHOWN = 40  # items drawn; the others are listed below
_TOO_NEAR = 2.0  # standard errors
_LONG = 80  # characters of an item


def page(result: dict[str, Any]) -> str:
    """Return the page of an outcome (`linsketch.report.outcome`)."""
    plan = result["plan"]
    histogram = plan["error"] is not None
    found = result["histogram" if histogram else "heavy_hitters"]
    cut = plan["error"] if histogram else plan["threshold"]
    style = files("linsketch.report").joinpath("page.css").read_text("utf-8")
    goal = f"error {cut:,}" if histogram else f"threshold {cut:,}"
    users = sum(line["users"] for line in result["rounds"])
    closed = f"{len(result['rounds'])} of {plan['rounds']} rounds"
    title = escape(printable(result["source"] or "A campaign"))
    body = [
        f"<h1>{'Histogram' if histogram else 'Heavy hitters'}</h1>",
        f"<p class=lead>{_source(result)}{users:,} users in {closed}, "
        f"method <b>{escape(plan['method'])}</b>, {goal}. The server saw one sum a round"
        f"{_asked(plan)}.</p>",
        _facts(result, found),
        _failed(result),
        *(f"<p class=warning>{escape(warning)}</p>" for warning in result["warnings"]),
        _items(found, cut, histogram),
        _against_truth(result.get("truth")),
        "<h2>Round by round</h2>",
        _rounds(result),
        _privacy(plan),
        f"<details><summary>Plan {escape(result['plan_id'][:16])}…</summary><dl class=plan>"
        + "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in plan.items())
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


def _facts(result: dict[str, Any], found: list[dict[str, Any]]) -> str:
    facts = [
        (f"{len(found):,}", "items found"),
        (f"{result['bytes_per_user_round']:,}", "bytes a user and round"),
        (f"{result['words_per_user_round']:,}", "16-bit words"),
        (
            f"{result['down_bytes_per_user_round']:,}",
            "bytes to a user: the task, the items it names",
        ),
    ]
    if up := result["secure_sum"].get("up_bytes"):
        facts.append((f"{up:,}", f"bytes with the secure sum ({result['secure_sum']['protocol']})"))
    truth = result.get("truth", {}).get("after", {})
    if "f1" in truth:
        facts.append((f"{truth['f1']:.3f}", "F1 against the bounded truth"))
        if (before := result["truth"]["before"]["f1"]) != truth["f1"]:
            facts.append((f"{before:.3f}", "F1 before the bound on items a user"))
    if "largest_error" in truth:
        facts.append((f"{truth['largest_error']:,.0f}", "largest error against the truth"))
    cards = "".join(f"<li><b>{number}</b><span>{what}</span></li>" for number, what in facts)
    return f"<ul class=facts>{cards}</ul>"


def _source(result: dict[str, Any]) -> str:
    return f"{escape(printable(result['source']))}: a rehearsal. " if result["source"] else ""


def _asked(plan: dict[str, Any]) -> str:
    """Say what the server saw besides the sums."""
    if plan["method"] == "count-median":
        return "; it was asked about all items of the data, which a real one does not know"
    if plan["method"] == "slots":
        return ", and named to users what it had found before"
    return ", nothing else"


def _failed(result: dict[str, Any]) -> str:
    rounds = result["failed_rounds"]["rounds"]
    if not rounds:
        return ""
    how = (
        "the other rounds are scaled up for them"
        if result["failed_rounds"]["counted_as"] == "scale"
        else "they count as zero"
    )
    names = ", ".join(map(str, rounds))
    return f"<p class=warning>Rounds that did not decode completely: {names}; {how}.</p>"


def _items(found: list[dict[str, Any]], cut: int, histogram: bool) -> str:
    if not found:
        return "<p class=warning>No item reached the threshold.</p>"
    drawn = found[:_SHOWN]
    least = drawn[-1]["estimate"] if histogram else min(cut, drawn[-1]["estimate"])
    most = max(line["estimate"] + 2 * line["stderr"] for line in drawn)
    scale = LogScale(max(least, 1) / 2, max(1.1 * most, 4))
    grid = "".join(f"<i class=tick style='left:{scale.place(v):.2f}%'></i>" for v in scale.ticks())
    rows = []
    for line in drawn:
        low = scale.place(line["estimate"] - 2 * line["stderr"])
        high = scale.place(line["estimate"] + 2 * line["stderr"])
        marks = f"{grid}<i class=range style='left:{low:.2f}%;width:{high - low:.2f}%'></i>"
        marks += f"<i class=dot style='left:{scale.place(line['estimate']):.2f}%'></i>"
        if (true := line.get("true_count")) is not None:
            marks += f"<i class=true style='left:{scale.place(true):.2f}%'></i>"
        if not histogram:
            marks += f"<i class=cut style='left:{scale.place(cut):.2f}%'></i>"
        doubtful = not histogram and line["estimate"] - cut < _TOO_NEAR * line["stderr"]
        rows.append(
            f"<tr{' class=near' if doubtful else ''}><th scope=row>{_name(line['item'])}</th>"
            f"<td class=bar><div>{marks}</div></td>"
            f"<td class=number>{line['estimate']:,.0f} <small>± {line['stderr']:,.0f}</small></td>"
            "</tr>"
        )
    signs = [("dot", "estimate"), ("range", "± 2 standard errors")]
    signs += [] if histogram else [("cut", "threshold")]
    signs += [("true", "true count, after the bound")] if "true_count" in found[0] else []
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
            f"<li>{_name(line['item'])} <small>{line['estimate']:,.0f} ± {line['stderr']:,.0f}"
            "</small></li>"
            for line in found[_SHOWN:]
        )
        text += f"<details><summary>{len(found) - _SHOWN:,} more</summary><ol class=rest "
        text += f"start={_SHOWN + 1}>{rest}</ol></details>"
    return text


def _against_truth(truth: dict[str, Any] | None) -> str:
    if not truth:
        return ""
    if "f1" not in truth["after"]:
        within = "within" if truth["after"]["within_error"] else "beyond"
        return (
            f"<h2>Against the truth</h2><p>Largest error: {truth['after']['largest_error']:,.1f}"
            f", {within} the error planned for.</p>"
        )
    rows = "".join(
        f"<tr><th scope=row>{name} the bound</th><td>{line['precision']:.3f}</td>"
        f"<td>{line['recall']:.3f}</td><td>{line['f1']:.3f}</td><td>{len(line['missed'])}</td>"
        f"<td>{len(line['wrong'])}</td></tr>"
        for name, line in truth.items()
    )
    heads = "".join(
        f"<th>{name}</th>" for name in ("", "precision", "recall", "F1", "missed", "wrong")
    )
    text = f"<h2>Against the truth</h2><table class=plain><thead><tr>{heads}</tr></thead>"
    text += f"<tbody>{rows}</tbody></table>"
    text += "<p class=small>The bound is that on items a user, which is a bias.</p>"
    for when in ("before", "after") if truth["before"] != truth["after"] else ("after",):
        for name in ("missed", "wrong"):
            if items := truth[when][name]:
                label = f"{name} ({when} the bound)" if truth["before"] != truth["after"] else name
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


def _rounds(result: dict[str, Any]) -> str:
    lines = result["rounds"]
    numbers = [line["round"] for line in lines]
    ts = Series("sampling threshold t", [line["sampling_threshold"] for line in lines])
    charts = []
    if any(line["capacity"] for line in lines):
        failed = [line["status"] != "complete" for line in lines]
        load = Series(
            "keys in the table", [line["estimated_keys"] for line in lines], marked=failed
        )
        room = Series("capacity", [line["capacity"] for line in lines], dashed=True)
        charts.append(chart(numbers, [ts]))
        charts.append(chart(numbers, [load, room], note="hollow: did not decode completely"))
    if any(line["named"] for line in lines):
        named = Series("items named to users", [line["named"] for line in lines])
        counted = Series("counted in slots", [line["slots"] for line in lines], dashed=True)
        charts.append(chart(numbers, [named, counted]))
        part = Series("part of the keys looked at, %", [100 * line["slice"] for line in lines])
        charts.append(chart(numbers, [part]))
    charts.append(chart(numbers, [Series("bytes a user", [line["bytes"] for line in lines])]))
    charts.append(chart(numbers, [Series("users", [line["users"] for line in lines])]))
    names = ("round", "users", "sampling_threshold", "capacity", "cells", "status", "keys")
    heads = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in names)
    rows = "".join(
        f"<tr class={line['status']}>"
        + "".join(f"<td>{_number(line[name])}</td>" for name in names)
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


def _privacy(plan: dict[str, Any]) -> str:
    if plan["error"] is not None:
        hidden = " Items below the error are left out here;"
    elif plan["method"] == "proven":
        hidden = " Items from a tenth of the threshold on may be listed;"
    else:
        hidden = " Items below the threshold are left out here;"
    return (
        f"<p class=small>What this page does not promise:{hidden} the campaign's transcript lists "
        "every sampled item, also one that a single person has, and is to be kept accordingly. No "
        "differential privacy is claimed.</p>"
    )
