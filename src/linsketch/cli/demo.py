"""`linsketch demo`: devices with words of their own, a server that sees only their sum."""

import json
import sys
from collections import Counter
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from linsketch import IBLT, CountMin, CountSketch, Seeds, Utf8Keys
from linsketch.rings import HEADER_BYTES
from linsketch.sketch.base import Sketch

WORDS = 2_000  # on each device
VOCABULARY = 5_000
SPACE = Utf8Keys(16)
SEEDS = Seeds(b"linsketch demo")


def demo(
    devices: Annotated[int, typer.Option(min=1, max=1_000, help="How many devices.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Add up sketches of English words from several devices and list the words of the sum."""
    texts = _texts(devices)
    truth = sum(texts, Counter[str]())
    table = IBLT.sized(
        SPACE,
        capacity=len(truth),
        max_count=devices * WORDS,
        seeds=SEEDS,
        failure_probability=1e-4,
    )
    table.list_entries(table.encode({"": 1}))  # compile, or load what was compiled before

    start = perf_counter()
    messages = [table.pack(table.encode(text)) for text in texts]
    encoded = perf_counter()
    total = table.ring.sum(map(table.unpack, messages))
    summed = perf_counter()
    peel = table.list_entries(total)
    listed = perf_counter()

    result = {
        "devices": devices,
        "words_per_device": WORDS,
        "distinct_words": len(truth),
        "status": peel.status.name.lower(),
        "exact": peel.histogram == truth,
        "message_bytes": len(messages[0]),
        "header_bytes": HEADER_BYTES,
        "milliseconds": {
            "encode one device": (encoded - start) * 1e3 / devices,
            "add all vectors": (summed - encoded) * 1e3,
            "list the sum": (listed - summed) * 1e3,
        },
        "sketches": _compare(table, texts, truth),
        "top": [[item, peel.histogram.get(item)] for item, _ in truth.most_common(10)],
    }
    if as_json:
        sys.stdout.write(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    else:
        _show(result, str(peel))
    if not result["exact"]:
        raise typer.Exit(1)


def _texts(devices: int) -> list[Counter[str]]:
    """Draw each device's words from their frequencies in English."""
    try:
        from wordfreq import top_n_list, word_frequency
    except ImportError:
        sys.stderr.write("The demo needs a word list: pip install 'linsketch[demo]'\n")
        raise typer.Exit(2) from None
    words = [word for word in top_n_list("en", VOCABULARY) if len(word.encode()) <= SPACE.max_bytes]
    weights = np.array([word_frequency(word, "en") for word in words])
    rng = np.random.default_rng(1)
    return [
        Counter(rng.choice(words, WORDS, p=weights / weights.sum()).tolist())
        for _ in range(devices)
    ]


def _compare(table: IBLT, texts: list[Counter[str]], truth: Counter[str]) -> list[dict[str, Any]]:
    """Sum the same texts in other sketches; count sketches get the bytes of the table."""
    rows, count = 5, table.max_count
    width = table.ring.wire_bits // rows // (count.bit_length() + 1)
    others: dict[str, Sketch] = {
        "IBLT, compact": table,
        "IBLT, paper layout": IBLT(SPACE, table.size, count, SEEDS, "paper"),
        "count sketch": CountSketch(SPACE, rows, width, count, SEEDS, SEEDS),
        "count-min sketch": CountMin(SPACE, rows, width, count, SEEDS),
    }
    lines = []
    for name, sketch in others.items():
        total = sketch.ring.sum(map(sketch.encode, texts))
        if isinstance(sketch, IBLT):
            found = sketch.list_entries(total).histogram
            errors = [found.get(item, 0) - count for item, count in truth.items()]
        elif isinstance(sketch, CountSketch | CountMin):
            errors = list(sketch.estimate(total, truth) - np.array(list(truth.values())))
        lines.append(
            {
                "sketch": name,
                "bytes": sketch.ring.wire_bytes,
                "words": sketch.ring.wire_words,
                "lists_items": isinstance(sketch, IBLT),
                "largest_error": int(np.abs(errors).max()),
            }
        )
    return lines


def _show(result: dict[str, Any], verdict: str) -> None:
    console = Console()
    console.print(
        f"[bold]{result['devices']} devices[/] with {WORDS:,} English words each send one vector. "
        f"The server adds them up and lists what the sum holds:\n[bold green]{verdict}[/]\n"
    )
    top = Table("word", title="The most popular words")
    top.add_column("count in the sum", justify="right")
    for item, count in result["top"]:
        top.add_row(item, "missing" if count is None else f"{count:,}")
    sizes = Table("sketch", title="What a device sends")
    sizes.add_column("bytes", justify="right")
    sizes.add_column("16-bit words", justify="right")
    sizes.add_column("lists items")
    sizes.add_column("largest error", justify="right")
    for line in result["sketches"]:
        sizes.add_row(
            line["sketch"],
            f"{line['bytes']:,}",
            f"{line['words']:,}",
            "yes" if line["lists_items"] else "no",
            f"{line['largest_error']:,}",
        )
    console.print(top, sizes, sep="\n")
    times = ", ".join(f"{what} {ms:.1f} ms" for what, ms in result["milliseconds"].items())
    console.print(f"A message has a header of {HEADER_BYTES} bytes besides. Times: {times}.")
