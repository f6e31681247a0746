#!/usr/bin/env python3
"""Plans the memory of generated problems that are as tight as the published ones of MiniMalloc, and
of the published ones if they are there: does `tessera plan-memory` fit the buffers into the
capacity, or prove that nothing can, within the time limit?

Kinds of problems, each with a capacity of 1 MiB:
    cut         a block that is cut in two again and again: every step is full
    spiral      the same, but some cuts leave five pieces that lie in a spiral
    thinned     pieces are left out, except those that are live in one step, which stays full
    shaved      pieces become shorter or smaller, except those that are live in one step
    slack       pieces are left out anywhere: usually no step is full
    impossible  no step has more than the capacity, but the buffers do not fit

Prints a table, and exits with code 1 if a problem is neither solved nor proven impossible."""

import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

from harness import ROOT
from harness.arguments import Parser
from harness.report import Table

CAPACITY = 1 << 20
KINDS = ("cut", "spiral", "thinned", "shaved", "slack", "impossible")
# Verdicts.
SOLVED = "solved"
IMPOSSIBLE = "impossible"
NEITHER = "neither"
WRONG = "wrong"


def cut_in_spiral(source, piece):
    """Five pieces, of which none of the outer four reaches from side to side."""
    left, right, bottom, top = piece
    one, two = sorted(source.sample(range(left + 1, right), 2))
    low, high = sorted(source.sample(range(bottom + 1, top), 2))
    if source.random() < 0.5:
        return [(left, two, bottom, low), (two, right, bottom, high), (one, right, high, top),
                (left, one, low, top), (one, two, low, high)]
    return [(left, one, bottom, high), (one, right, bottom, low), (two, right, low, top),
            (left, two, high, top), (one, two, low, high)]


def cut_block(source, count, steps, units, spiral_share):
    """At least `count` pieces (left, right, bottom, top) that fill `steps` times `units`."""
    pieces = [(0, steps, 0, units)]
    while len(pieces) < count:
        place = source.randrange(len(pieces))
        left, right, bottom, top = pieces[place]
        if source.random() < spiral_share:
            if min(right - left, top - bottom) >= 3:
                pieces[place:place + 1] = cut_in_spiral(source, pieces[place])
        elif source.random() < 0.5:
            if right - left >= 2:
                at = source.randrange(left + 1, right)
                pieces[place:place + 1] = [(left, at, bottom, top), (at, right, bottom, top)]
        elif top - bottom >= 2:
            at = source.randrange(bottom + 1, top)
            pieces[place:place + 1] = [(left, right, bottom, at), (left, right, at, top)]
    return pieces


def shave(source, piece):
    """A part of the piece: it begins later, ends earlier, or is smaller."""
    left, right, bottom, top = piece
    side = source.choice(("left", "right", "top", "top"))
    if side == "left" and right - left > 1:
        left = source.randrange(left + 1, right)
    elif side == "right" and right - left > 1:
        right = source.randrange(left + 1, right)
    elif side == "top" and top - bottom > 1:
        top = source.randrange(bottom + 1, top)
    return left, right, bottom, top


def tight_instance(source, kind):
    """Buffers (lower, upper, bytes) that fit into CAPACITY, most of them tightly."""
    units = source.choice((256, 1024, 1024, 4096, CAPACITY))
    steps = source.choice((1024, 4096))
    # Without any gap, problems are harder than the published ones, so they have fewer buffers.
    count = source.randrange(60, 250) if kind in ("cut", "spiral") else source.randrange(150, 450)
    spiral_share = {"cut": 0, "spiral": 0.15}.get(kind, source.choice((0, 0.15)))
    pieces = cut_block(source, count, steps, units, spiral_share)
    loss = source.uniform(0.02, 0.4)
    full_step = source.randrange(steps)

    def is_kept(piece):
        is_full = kind != "slack" and piece[0] <= full_step < piece[1]
        return is_full or source.random() >= loss

    if kind in ("thinned", "slack"):
        pieces = [piece for piece in pieces if is_kept(piece)]
    elif kind == "shaved":
        pieces = [piece if is_kept(piece) else shave(source, piece) for piece in pieces]
    return [(left, right, (top - bottom) * (CAPACITY // units))
            for left, right, bottom, top in pieces]


# At most five units are live, but six are needed. Call them A to G. In five units, A and B are at
# the two ends, so B leaves two units at one end, which C and D fill. F leaves two units at one end,
# which C and E fill. Both times C is in these two units, so they are at the same end, and D and E
# take the same unit beside C; but both are live in step 2.
KNOT = ((0, 1, 2), (0, 2, 3), (1, 4, 1), (1, 3, 1), (2, 4, 1), (3, 6, 3), (4, 6, 2))
KNOT_UNITS = 5
BLOCK_STEPS = 8


def impossible_instance(source):
    """Blocks that are cut into pieces, one after the other, and one knot instead of a block; also
    buffers that are live in all steps. If these were between the others, they could be moved to the
    end, so they do not help the knot. No step has more than the capacity."""
    unit = source.choice((16, 64, 128, 192)) * 1024
    height = KNOT_UNITS * unit
    blocks = source.randrange(2, 9)
    knot = source.randrange(blocks)
    buffers = []
    for block in range(blocks):
        begin = BLOCK_STEPS * block
        if block == knot:
            buffers += [(begin + lower, begin + upper, size * unit) for lower, upper, size in KNOT]
            continue
        pieces = cut_block(source, source.randrange(5, 25), BLOCK_STEPS, height // 1024, 0.1)
        buffers += [(begin + left, begin + right, (top - bottom) * 1024)
                    for left, right, bottom, top in pieces]
    layers = cut_block(source, source.randrange(1, 7), 1, (CAPACITY - height) // 1024, 0)
    return buffers + [(0, BLOCK_STEPS * blocks, (top - bottom) * 1024)
                      for _, _, bottom, top in layers]


def make_instance(seed):
    """The kind and the buffers of problem number `seed`, in random order."""
    source = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    buffers = (impossible_instance(source) if kind == "impossible"
               else tight_instance(source, kind))
    source.shuffle(buffers)
    return kind, buffers


def csv_text(buffers):
    lines = [f"{index},{lower},{upper},{size}"
             for index, (lower, upper, size) in enumerate(buffers)]
    return "\n".join(["id,lower,upper,size", *lines]) + "\n"


def verdict_of(kind, report):
    """Compares with what is known: all kinds but one fit, and that one cannot."""
    if report["arena_bytes"] <= CAPACITY:
        return WRONG if kind == "impossible" else SOLVED
    if not report["is_proven_smallest"]:
        return NEITHER
    return IMPOSSIBLE if kind == "impossible" else WRONG


def plan(arguments, path):
    """The report of Tessera."""
    done = subprocess.run(
        [arguments.tessera, "plan-memory", path, "--capacity", str(CAPACITY), "--time-limit",
         str(arguments.time_limit), "--json"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{path}: {done.stderr}")
    return json.loads(done.stdout)


def minimalloc_seconds(arguments, path, folder):
    """Its wall time, or None if it had no solution within the time limit."""
    output = folder / "minimalloc.csv"
    output.unlink(missing_ok=True)
    start = time.monotonic()
    try:
        subprocess.run([arguments.minimalloc, f"--capacity={CAPACITY}", f"--input={path}",
                        f"--output={output}"], stdin=subprocess.DEVNULL, capture_output=True,
                       check=False, timeout=arguments.time_limit)
    except subprocess.TimeoutExpired:
        return None
    is_solved = output.exists() and output.stat().st_size > 0
    return time.monotonic() - start if is_solved else None


def measure(arguments, folder, kind, name, path):
    report = plan(arguments, path)
    row = {"kind": kind, "name": name, "verdict": verdict_of(kind, report),
           "seconds": report["plan_us"] / 1e6, "arena_bytes": report["arena_bytes"],
           "lower_bound_bytes": report["lower_bound_bytes"]}
    if arguments.minimalloc:
        row["minimalloc_seconds"] = minimalloc_seconds(arguments, path, folder)
    if arguments.verbose or row["verdict"] in (NEITHER, WRONG):
        print(json.dumps(row), flush=True, file=sys.stderr)
    return row


def problems(arguments, folder):
    """(kind, name, path) of every problem."""
    published = pathlib.Path(arguments.published) if arguments.published else None
    paths = sorted(published.glob(f"*.{CAPACITY}.csv")) if published else []
    if published and not paths:
        print(f"no published problems in {published}: skipped", file=sys.stderr)
    for path in paths:
        yield "published", path.name, path
    for seed in range(arguments.first, arguments.first + arguments.count):
        kind, buffers = make_instance(seed)
        path = folder / "buffers.csv"
        path.write_text(csv_text(buffers))
        yield kind, f"{kind} {seed}", path


def print_table(rows, has_minimalloc):
    columns = [("kind", "<12"), ("problems", "9"), ("solved", "8"), ("impossible", "12"),
               ("neither", "9"), ("median s", "10.3f"), ("worst s", "9.2f")]
    if has_minimalloc:
        columns += [("MiniMalloc: solved", "20"), ("median s", "10.3f"), ("worst s", "9.2f")]
    table = Table(*columns)
    table.print_titles()

    def median_and_most(seconds):
        return (statistics.median(seconds), max(seconds)) if seconds else (None, None)

    for kind in ("published", *KINDS, "all"):
        chosen = [row for row in rows if kind in (row["kind"], "all")]
        counts = [sum(row["verdict"] == verdict for row in chosen)
                  for verdict in (SOLVED, IMPOSSIBLE, NEITHER)]
        others = [row["minimalloc_seconds"] for row in chosen
                  if row.get("minimalloc_seconds") is not None]
        if chosen:
            table.print(kind, len(chosen), *counts,
                        *median_and_most([row["seconds"] for row in chosen]),
                        len(others), *median_and_most(others))


def parse_arguments():
    parser = Parser(__doc__, '--count 12 --time-limit 10 --published ""')
    parser.option("--count", 200, "generated problems")
    parser.option("--first", 0, "number of the first problem", int)
    parser.option("--time-limit", 60.0, "seconds for each problem")
    parser.option("--published", str(ROOT.parent / "shared" / "instances"),
                  'folder with published problems; "": none', metavar="DIR")
    parser.option("--minimalloc", None, "program to compare with", metavar="FILE")
    parser.flag("--verbose", "print every problem to stderr")
    parser.share("tessera")
    return parser.parse()


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rows = [measure(arguments, folder, *problem) for problem in problems(arguments, folder)]
    print_table(rows, arguments.minimalloc is not None)
    bad = [row["name"] for row in rows if row["verdict"] in (NEITHER, WRONG)]
    if bad:
        print("neither solved nor proven impossible: " + ", ".join(bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
