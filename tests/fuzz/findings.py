"""Collects problems, one finding for each kind of problem of an op, input and backend, and saves
each as a case in a file."""

import dataclasses
import functools
import hashlib
import re

import onnx

from runner import JUDGES
from verdict import RANDOM_OPS, Problem, explain_ruling, find_problem, names_of


@dataclasses.dataclass
class Finding:
    op: str
    backend: str
    kind: str
    where: str  # which case, and how its input was corrupted
    message: str
    case: object  # a fuzz_case.Case with one run

    def signature(self):
        """Equal for findings that probably have the same cause."""
        text = re.sub(r"0x[0-9a-f]+|-?\d+", "0", self.message.splitlines()[0])[:60]
        return (self.op, self.backend, self.kind, text if self.kind != "differs" else "")

    def text(self):
        return f"{self.op} on {self.backend or 'all'}: {self.kind}: {self.where}: {self.message}"


@dataclasses.dataclass
class Statistics:
    models: int = 0
    runs: int = 0  # of Tessera
    to_the_end: int = 0
    against_onnxruntime: int = 0
    against_reference: int = 0
    refused: int = 0
    ops: set = dataclasses.field(default_factory=set)  # that completed a run at least once

    def text(self, known_count):
        def share(count):
            return f"{count} ({100 * count / max(1, self.runs):.1f} %)"

        return (f"models: {self.models}\nruns: {self.runs}\n"
                f"ops that ran to the end: {len(self.ops)} of {known_count}\n"
                f"runs to the end: {share(self.to_the_end)}\n"
                f"compared with ONNX Runtime: {share(self.against_onnxruntime)}\n"
                f"compared with onnx.reference: {share(self.against_reference)}\n"
                f"refused with an error: {share(self.refused)}")


class Collector:
    """Runs cases with `runner` and keeps findings; `ignored_kinds` are not reported."""

    def __init__(self, runner, ignored_kinds=()):
        self.runner = runner
        self.ignored_kinds = ignored_kinds
        self.findings = {}
        self.newest_refused = set()  # corruptions that the first backend refused in the last check
        self.statistics = Statistics()

    def check(self, op, name, case, what, judges=JUDGES, refused=None):
        """Returns the new findings. `what` says for each run how its input was corrupted. `refused`
        is a set of corruptions that the first backend refused when the values were known at bind;
        it must refuse these corruptions now too."""
        answers, judged = self.runner.run(case, judges)
        names = names_of(case.model)
        self.statistics.models += 1
        new = []
        for index in range(len(case.runs)):
            kinds = set()
            for backend, runs in answers.items():
                run, of_run = runs[index], {judge: judged[judge][index] for judge in judges}
                self.count(op, run, of_run)
                if op in RANDOM_OPS and run["kind"] == "":
                    continue
                problem = find_problem(run, of_run, names, is_newest(case.model, op))
                if run["kind"] == "" and what[index] in (refused or ()):
                    problem = Problem("accepts", "what it refuses where the values are known")
                elif problem and problem.kind == "accepts" or problem and explain_ruling(
                        op, problem, f"{name} {what[index]}"):
                    continue
                # A problem that was found on one backend is not reported again for the next.
                if problem and problem.kind not in kinds and problem.kind not in self.ignored_kinds:
                    kinds.add(problem.kind)
                    where = f"{name} {what[index] or 'as it should be'}"
                    kept = case if problem.message.startswith("only after") else case.single(index)
                    new += self.add(Finding(op, backend, problem.kind, where, problem.message, kept))
        first = next(iter(answers.values()))
        self.newest_refused = {way for way, run in zip(what, first)
                               if run["kind"] in ("InvalidModel", "InvalidArgument")}
        return new

    def kinds_of(self, op, case):
        """The kinds of problems of any run on any backend; nothing is counted or kept."""
        answers, judged = self.runner.run(case)
        kinds = set()
        for runs in answers.values():
            for index, run in enumerate(runs):
                problem = find_problem(run, {judge: judged[judge][index] for judge in judged},
                                       names_of(case.model), is_newest(case.model, op))
                if problem and not explain_ruling(op, problem, ""):
                    kinds.add(problem.kind)
        return kinds

    def add(self, finding):
        finding.case.note = finding.text()[:600]
        finding.case.is_refused |= finding.kind == "accepts"
        if finding.signature() in self.findings:
            return []
        self.findings[finding.signature()] = finding
        return [finding]

    def count(self, op, run, judged):
        statistics = self.statistics
        statistics.runs += 1
        statistics.refused += run["kind"] not in ("", "crash", "hang", "exception", "Internal")
        if run["kind"] == "":
            statistics.to_the_end += 1
            statistics.ops.add(op)
            statistics.against_onnxruntime += "arrays" in judged.get("onnxruntime", {})
            statistics.against_reference += "arrays" in judged.get("reference", {})


def is_newest(model, op):
    """Whether the model's operator set has the newest version of the op."""
    domain = next(node.domain for node in model.graph.node if node.op_type == op)
    opset = next(entry.version for entry in model.opset_import if entry.domain == domain)
    versions = versions_of(op, domain)
    return max(version for version in versions if version <= opset) == versions[-1]


@functools.cache
def versions_of(op, domain):
    return sorted(schema.since_version for schema in onnx.defs.get_all_schemas_with_history()
                  if schema.name == op and schema.domain == domain)


def file_name(finding):
    digest = hashlib.sha256(repr(finding.signature()).encode()).hexdigest()[:6]
    kind = finding.kind.replace(" ", "_")
    return f"{finding.op}_{finding.backend.replace(',', '_') or 'all'}_{kind}_{digest}.onnx"
