"""The printed tables of the benchmarks on a device, in Markdown, and what the JSON file has of them.

print(times_table(measured), bars_table([measured]), sep="\\n")
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.cuda.measure import Measured, fastest
from benchmarks.report import duration, table


def times_table(found: Measured) -> str:
    """Return one line per variant: medians, ratios to the primal and to a copy, and the first call."""
    has_copy = "copy" in found.case.references
    head = [found.case.name, "seconds", "on the device", "/ primal", *(["/ copy"] if has_copy else [])]
    rows = []
    for name in {**found.case.runners, **found.case.peers}:
        if name in found.missing:
            rows.append([name, *["-"] * (len(head) + 1)])
            continue
        times = found.device if name in found.device else found.calls
        ratios = [f"{_over(found, times, name, under):.2f}" for under in ("primal", "copy")[: 1 + has_copy]]
        on_device = duration(median(found.device[name])) if name in found.device else "-"
        rows.append(
            [
                name,
                duration(median(found.calls[name])),
                on_device,
                *ratios,
                duration(found.first[name]),
                f"{found.errors[name]:.0e}",
            ]
        )
    return table([*head, "first call", "error"], rows)


def _over(found: Measured, times: dict[str, list[float]], name: str, under: str) -> float:
    """Return a ratio: of times on the device, or of calls for a variant that has only those."""
    other = fastest(times if times is found.device else found.calls, under)
    assert other is not None
    return median(times[name]) / other


def notes(found: Measured) -> list[str]:
    """Return why variants have no times, in a line for each reason."""
    names: dict[str, list[str]] = {}
    for name, why in found.missing.items():
        names.setdefault(why, []).append(name)
    return [f"{found.case.name}: {'; '.join(each)}: {why}" for why, each in names.items()]


def bars_table(results: Sequence[Measured], *, is_simulated: bool = False) -> str:
    """Return one line per bar: the ratio, the limit, and whether it is met."""
    rows = []
    for found in results:
        for bar in found.case.bars:
            ratio = found.ratio(bar)
            state = "-" if ratio is None or is_simulated else "met" if bar.is_met(ratio) else "missed"
            shown = "-" if ratio is None else f"{ratio:.3g}"
            rows.append(
                (f"{found.case.name}: {bar.text}", shown, f"{'>=' if bar.is_least else '<='} {bar.limit:g}", state)
            )
    return table(("bar", "ratio", "limit", ""), rows)


def as_json(results: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return the results for a JSON file."""
    return [
        {
            "case": found.case.name,
            "title": found.case.title,
            "seconds": {name: {"median": median(t), "min": min(t)} for name, t in found.calls.items()},
            "on the device": {name: {"median": median(t), "min": min(t)} for name, t in found.device.items()},
            "first call": found.first,
            "errors": found.errors,
            "missing": found.missing,
            "bars": [
                {
                    "bar": bar.text,
                    "limit": bar.limit,
                    "ratio": ratio,
                    "met": None if ratio is None else bar.is_met(ratio),
                }
                for bar in found.case.bars
                for ratio in (found.ratio(bar),)
            ],
        }
        for found in results
    ]
