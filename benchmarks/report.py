"""The printed tables, in Markdown, and the JSON file.

    print(speed_table(results))
    write_json("out.json", results, compiled, sizes, peaks)

The file is a pyperf file (`python -m pyperf show out.json`) with an additional key, `zygote_py`, for the ratios.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.cases import STACK_VALUES
from benchmarks.code_size import Sizes, growth
from benchmarks.compile_programs import ROWS
from benchmarks.compile_time import AGAIN, LEAST, SIZES, Sample, Samples, slope
from benchmarks.measure import Times, ratio
from benchmarks.peers import PEERS
from benchmarks.transformations import WITH, WITHOUT

Results = Mapping[tuple[str, bool], Times]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]

    def text(line: list[str]) -> str:
        cells = [
            cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(line, widths, strict=True))
        ]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (w + 2) if c == 0 else "-" * (w + 1) + ":" for c, w in enumerate(widths)) + "|"
    return "\n".join([text(lines[0]), rule, *map(text, lines[1:])])


def duration(seconds: float) -> str:
    """Format a duration with three digits, `1.23 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def speed_table(results: Results) -> str:
    """Return one line per case: the fastest times of a call, their ratios, and the ratio of the medians."""
    peers = [peer for peer in PEERS if any(peer in times for times in results.values())]
    head = (
        "case",
        "fastmath",
        "primal",
        "gradient",
        "hand-written",
        "/ primal",
        "hand / primal",
        "/ hand",
        "/ hand, medians",
        *(name for peer in peers for name in (peer, f"/ {peer}")),
    )
    rows = []
    for (name, fastmath), times in results.items():
        rows.append(
            (
                name,
                "on" if fastmath else "off",
                *(duration(min(times[variant])) for variant in ("primal", "gradient", "hand-written")),
                f"{ratio(times, 'gradient', 'primal'):.2f}",
                f"{ratio(times, 'hand-written', 'primal'):.2f}",
                f"{ratio(times, 'gradient', 'hand-written'):.2f}",
                f"{ratio(times, 'gradient', 'hand-written', median):.2f}",
                *(text for peer in peers for text in _beside(times, peer)),
            )
        )
    return table(head, rows)


def _beside(times: Times, peer: str) -> tuple[str, str]:
    """Return the time of another package's gradient, and what the generated one takes of it; nothing if it has none."""
    return (duration(min(times[peer])), f"{ratio(times, 'gradient', peer):.2f}") if peer in times else ("", "")


def notes(results: Results) -> list[str]:
    """Return the results for which the table has no column."""
    lines = []
    for (name, fastmath), times in results.items():
        mode = f"fastmath {'on' if fastmath else 'off'}"
        if name == "stack":
            generated, listed = (per_value(times, variant) for variant in ("gradient", "hand-written"))
            lines.append(f"stack, {mode}: push + pop cost {generated:.2f} ns per value; hand-written: {listed:.2f} ns")
        if "one pass" in times:
            over = ratio(times, "gradient", "one pass")
            lines.append(f"{name}, {mode}: gradient / a gradient in one pass, without a reverse sweep: {over:.2f}")
    return lines


def per_value(times: Times, variant: str) -> float:
    """Return the nanoseconds of push and pop per recorded value: the excess over the same loops without a record."""
    return (min(times[variant]) - min(times["no record"])) / STACK_VALUES * 1e9


def second_table(rows: Mapping[str, Times]) -> str:
    """Return one line per case: the fastest times of a call, and their ratios."""
    head = ("second derivatives", "primal", "gradient", "second", "hand-written", "/ gradient", "/ hand-written")
    lines = []
    for name, times in rows.items():
        hand = "hand-written" in times
        lines.append(
            (
                name,
                *(duration(min(times[variant])) for variant in ("primal", "gradient", "second")),
                duration(min(times["hand-written"])) if hand else "",
                f"{ratio(times, 'second', 'gradient'):.2f}",
                f"{ratio(times, 'second', 'hand-written'):.2f}" if hand else "",
            )
        )
    return table(head, lines)


def compile_second_table(rows: Mapping[str, Times]) -> str:
    """Return one line per program: the time to the first gradient, and that of second derivatives as a multiple."""
    head = ("time to compile", "gradient", "hvp", "hessian")
    lines = [
        (
            name,
            duration(median(times["gradient"])),
            *(f"{ratio(times, how, 'gradient', median):.2f}" for how in ("hvp", "hessian")),
        )
        for name, times in rows.items()
    ]
    return table(head, lines)


def split_table(rows: Mapping[str, Times]) -> str:
    """Compare a gradient with its value in one call with `pullback` and a call of the pullback, all from Python."""
    return table(
        ("split", "value and gradient", "pullback, back", "ratio", "more"),
        (
            (
                name,
                *(duration(min(times[variant])) for variant in ("joint", "split")),
                f"{ratio(times, 'split', 'joint'):.2f}",
                f"{(min(times['split']) - min(times['joint'])) * 1e6:.1f} us",
            )
            for name, times in rows.items()
        ),
    )


def thread_table(rows: Mapping[str, Times]) -> str:
    """Compare gradients of functions with `parallel=True` in threads with one thread, and with the functions."""
    return table(
        ("threads", "function", "... in threads", "gradient", "... in threads", "faster", "function faster"),
        (
            (
                name,
                *(duration(min(times[each])) for each in ("function", "function, threads", "in order", "threads")),
                f"{ratio(times, 'in order', 'threads'):.2f}",
                f"{ratio(times, 'function', 'function, threads'):.2f}",
            )
            for name, times in rows.items()
        ),
    )


def memory_table(peaks: Mapping[str, Mapping[str, int]]) -> str:
    """Return the peak memory of gradients, including their results."""
    rows = (
        (name, size(found["gradient"]), size(found["hand-written"]), f"{found['gradient'] / found['hand-written']:.2f}")
        for name, found in peaks.items()
    )
    return table(("peak of memory", "gradient", "hand-written", "/ hand"), rows)


def by_size_table(found: Mapping[str, Mapping[int, Times]]) -> str:
    """Return the times for an element, and their ratios, by case and number of elements."""
    rows = (
        (
            name,
            f"{count:,}",
            *(duration(min(times[variant])) for variant in ("primal", "gradient", "hand-written")),
            f"{ratio(times, 'gradient', 'primal'):.2f}",
            f"{ratio(times, 'gradient', 'hand-written'):.2f}",
        )
        for name, sizes in found.items()
        for count, times in sizes.items()
    )
    return table(("time for an element", "elements", "primal", "gradient", "hand-written", "/ primal", "/ hand"), rows)


def effect_table(found: Mapping[tuple[str, bool], Mapping[str, Times]]) -> str:
    """Return for each transformation the cases that it changes, with the time without it over that with it."""
    changed: dict[str, list[str]] = {}
    for (name, fastmath), effects in found.items():
        for step, times in effects.items():
            gain = f"{name}{' (fastmath)' if fastmath else ''} {ratio(times, WITHOUT, WITH):.2f}"
            changed.setdefault(step, []).append(gain)
    rows = ((step, str(len(changed[step])), ", ".join(changed[step])) for step in sorted(changed))
    return table(("transformation", "cases", "time without / with"), rows)


def instruction_table(found: Mapping[str, Mapping[str, int]], kept: Mapping[str, Mapping[str, int]]) -> str:
    """Return the instructions of a call of each case, and the change since the kept counts were made."""
    rows = (
        (
            name,
            *(f"{each[variant]:,}" for variant in ("primal", "gradient", "hand-written")),
            f"{each['gradient'] / each['primal']:.2f}",
            f"{each['gradient'] / each['hand-written']:.2f}",
            f"{each['gradient'] / kept[name]['gradient'] - 1.0:+.1%}" if name in kept else "",
        )
        for name, each in found.items()
    )
    head = ("instructions of a call", "primal", "gradient", "hand-written", "/ primal", "/ hand", "change")
    return table(head, rows)


def size(count: int) -> str:
    """Format a number of bytes with three digits, `1.23 MB`."""
    for unit, number in (("MB", 1e6), ("kB", 1e3)):
        if count >= number:
            return f"{count / number:.3g} {unit}"
    return f"{count} B"


def compile_table(compiled: Samples) -> str:
    """Compare first derivatives with Numba's first call of the function, in CPU seconds of fresh processes."""
    head = ("first call, CPU seconds", "Numba", "gradient", "/ Numba", "again", "hessian", "/ Numba", "again", "peak")
    return table(head, (_compile_row(ROWS[name].title, samples) for name, samples in compiled.items()))


def _compile_row(title: str, samples: Mapping[str, Sequence[Sample]]) -> tuple[str, ...]:
    seconds = {how: median(sample.cpu for sample in each) for how, each in samples.items()}
    least = max(seconds["numba"], LEAST)
    cells = [title, f"{seconds['numba']:.2f}"]
    for how in ("gradient", "hessian"):
        given = seconds.get(how)
        texts = (
            ("", "", "") if given is None else (f"{given:.2f}", f"{given / least:.1f}", f"{seconds[how + AGAIN]:.2f}")
        )
        cells += texts
    peak = max(sample.peak for each in samples.values() for sample in each)
    return (*cells, size(peak))


def warm_table(found: Samples) -> str:
    """Compare the Kalman likelihood's first derivatives, with helpers of NumPy and linear algebra kept, with JAX's."""
    names = list(dict.fromkeys(name for samples in found.values() for name in samples))
    rows = (
        (order, *(f"{median(each.cpu for each in samples[name]):.2f}" for name in names))
        for order, samples in found.items()
    )
    return table(("Kalman likelihood, helpers kept, CPU seconds", *names), rows)


def growth_table(found: Mapping[str, Mapping[str, Mapping[int, float]]]) -> str:
    """Return the CPU seconds to the first gradient of programs of each size, and how linear they are."""
    head = ("pieces", *(f"Numba, {size}" for size in SIZES), *(f"gradient, {size}" for size in SIZES), "slope")
    rows = (
        (
            family,
            *(f"{by[how][size]:.1f}" for how in ("numba", "gradient") for size in SIZES),
            f"{slope(by['gradient']):.2f}",
        )
        for family, by in found.items()
    )
    return table(head, rows)


def size_table(sizes: Mapping[str, Sizes]) -> str:
    """Return the numbers of lines of functions and of their gradients."""
    rows = (
        (family, ", ".join(f"{a} -> {b}" for a, b in points.values()), f"{growth(points):.2f}")
        for family, points in sizes.items()
    )
    return table(("family", "lines of function -> of gradient", "growth (1 = linear)"), rows)


def write_json(
    path: Path,
    results: Results,
    compiled: Samples | None,
    sizes: Mapping[str, Sizes] | None,
    peaks: Mapping[str, Mapping[str, int]],
    on_device: Mapping[str, Times] | None = None,
    device: object = None,
) -> None:
    """Write all samples as pyperf benchmarks, and the ratios."""
    import pyperf  # the tables do without it

    samples = {
        (f"{name}{' fastmath' if fastmath else ''}", v): t
        for (name, fastmath), r in results.items()
        for v, t in r.items()
    }
    samples |= {
        (f"compile {name}", how): [sample.cpu for sample in each]
        for name, by in (compiled or {}).items()
        for how, each in by.items()
    }
    samples |= {
        (f"cuda {name}", variant): each for name, times in (on_device or {}).items() for variant, each in times.items()
    }
    benchmarks = [
        pyperf.Benchmark([pyperf.Run(times, metadata={"name": f"{name}: {variant}"}, collect_metadata=True)])
        for (name, variant), times in samples.items()
    ]
    document = {"version": "1.0", "benchmarks": []}
    if benchmarks:
        partial = path.with_suffix(".partial")
        pyperf.BenchmarkSuite(benchmarks).dump(str(partial), replace=True)
        document = json.loads(partial.read_text())
        partial.unlink()
    document["zygote_py"] = {
        "speed": [
            {
                "case": name,
                "fastmath": fastmath,
                "seconds": {variant: {"min": min(t), "median": median(t)} for variant, t in times.items()},
                "gradient_over_primal": ratio(times, "gradient", "primal"),
                "gradient_over_hand": ratio(times, "gradient", "hand-written"),
                "gradient_over_hand_of_medians": ratio(times, "gradient", "hand-written", median),
                **({"stack_ns_a_value": per_value(times, "gradient")} if name == "stack" else {}),
            }
            for (name, fastmath), times in results.items()
        ],
        "peak_bytes": {name: dict(found) for name, found in peaks.items()},
        "compile": {
            name: {how: {"cpu": [s.cpu for s in each], "peak": [s.peak for s in each]} for how, each in by.items()}
            for name, by in (compiled or {}).items()
        },
        "lines": {family: list(points.values()) for family, points in (sizes or {}).items()},
        **({} if device is None else {"cuda": device}),
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
