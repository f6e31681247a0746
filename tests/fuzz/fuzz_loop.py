"""The loop of the random model fuzzer: draws, runs, judges, minimises and saves."""

import dataclasses
import pathlib
import time

from findings import file_name
from random_models import draw_model, minimised

# The maximum number of additional runs to minimise one finding.
MOST_MINIMISED = 40


@dataclasses.dataclass
class Kept:
    number: int  # draw_model() reproduces the model from it
    finding: object
    file: pathlib.Path


def fuzz(collector, seeds, first_number, seconds, folder, say=lambda text: None, most_models=None):
    """Tries draw_model(first_number) and the following numbers for `seconds`, or up to
    `most_models` models, and writes each new finding to `folder`. Returns a list of Kept."""
    end = time.monotonic() + seconds
    kept, number = [], first_number
    while time.monotonic() < end and number - first_number != most_models:
        kept += try_model(collector, seeds, number, folder, say)
        number += 1
    return kept


def try_model(collector, seeds, number, folder, say):
    model = draw_model(number, seeds)
    try:
        case = model.case()
    except Exception:  # some combinations of steps are not valid; try the next number
        return []
    what = [""] * len(case.runs)
    found = []
    for finding in collector.check(model.base.op, f"model {number}: {model.name()}", case, what):
        smaller = smaller_case(collector, model, finding) if (
            len(collector.findings) <= MOST_MINIMISED) else None
        finding.case = smaller or finding.case
        finding.case.note = finding.text()[:600]
        file = pathlib.Path(folder) / file_name(finding)
        finding.case.save(file)
        found.append(Kept(number, finding, file))
        say(f"{finding.text()} [{file}]")
    return found


def smaller_case(collector, model, finding):
    """A case with fewer steps that still has a finding of this kind; None if there is none."""
    best = None

    def is_still_wrong(case):
        nonlocal best
        wrong = finding.kind in collector.kinds_of(model.base.op, case)
        if wrong:
            best = case
        return wrong

    minimised(model, is_still_wrong)
    return best
