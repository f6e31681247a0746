"""Compares placements of random problems with HiGHS, which solves them as integer programs. These
are derived from the definition of a placement, independent of the algorithm in src/place."""

import collections
import itertools
import json
import subprocess

import pytest

highspy = pytest.importorskip("highspy")

CASES = 400
LONG_CASES = 2000
NODES = 14
SLICES = 4


class Programme:
    """An integer program for HiGHS: minimises a sum over columns subject to rows."""

    def __init__(self):
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        # With presolve, HiGHS 1.15.1 reports some worse solutions as optimal; it finds the better
        # one if that is fixed.
        self.solver.setOptionValue("presolve", "off")
        self.solver.setOptionValue("mip_rel_gap", 0.0)
        self.solver.setOptionValue("mip_abs_gap", 1e-6)
        self.columns = 0

    def column(self, cost=0.0, most=1.0, is_integer=True):
        self.solver.addVar(0.0, most)
        index = self.columns
        self.columns += 1
        self.solver.changeColCost(index, cost)
        if is_integer:
            self.solver.changeColIntegrality(index, highspy.HighsVarType.kInteger)
        return index

    def row(self, terms, least=-highspy.kHighsInf, most=highspy.kHighsInf):
        sums = collections.Counter()
        for column, factor in terms:
            sums[column] += factor
        self.solver.addRow(least, most, len(sums), list(sums), list(map(float, sums.values())))

    def least(self):
        self.solver.run()
        status = self.solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        assert status == highspy.HighsModelStatus.kOptimal, status
        return self.solver.getInfo().objective_function_value


def least_by_highs(problem):
    programme = Programme()
    candidates = problem["candidates"]
    chosen = [programme.column(one["seconds"],
                               most=one["workspace_bytes"] <= problem["workspace_bytes_limit"]
                               and not is_forbidden)
              for one, is_forbidden in zip(candidates, problem["is_forbidden"])]
    for node in range(len(problem["nodes"])):
        covers = [(chosen[index], 1) for index, one in enumerate(candidates)
                  if node in one["nodes"]]
        programme.row(covers, least=1, most=1)

    # Each candidate has a time at which it runs, after the candidates that compute its inputs.
    count = len(candidates)
    time = [programme.column(most=count, is_integer=False) for _ in candidates]
    for first, maker in enumerate(candidates):
        made = {value for value, _ in maker["outputs"]}
        for second, reader in enumerate(candidates):
            if first != second and made & {value for value, _ in reader["inputs"]}:
                # Only if both are chosen.
                programme.row([(time[second], 1), (time[first], -1),
                               (chosen[first], -(count + 1)), (chosen[second], -(count + 1))],
                              least=1 - 2 * (count + 1))

    makers = {value for node in problem["nodes"] for value in node["outputs"]}
    layouts = range(problem["layouts"])
    for value, prices in enumerate(problem["conversion_prices"]):
        if problem["is_constant"][value]:
            continue
        at_hand = [programme.column() for _ in layouts]
        depth = [programme.column(most=len(layouts), is_integer=False) for _ in layouts]
        into = {layout: [] for layout in layouts}
        for source in layouts:
            for target in layouts:
                price = prices[source * len(layouts) + target]
                if source == target or price is None:
                    continue
                conversion = programme.column(price)
                into[target].append((conversion, 1))
                programme.row([(conversion, 1), (at_hand[source], -1)], most=0)
                # Conversions must not form a cycle.
                big = len(layouts) + 1
                programme.row([(depth[target], 1), (depth[source], -1), (conversion, -big)],
                              least=1 - big)
        for layout in layouts:
            terms = [(at_hand[layout], 1)] + [(column, -1) for column, _ in into[layout]]
            terms += [(chosen[index], -1) for index, one in enumerate(candidates)
                      if [value, layout] in one["outputs"]]
            is_given = value not in makers and layout == 0
            programme.row(terms, most=1 if is_given else 0)
            for index, one in enumerate(candidates):
                if [value, layout] in one["inputs"]:
                    programme.row([(at_hand[layout], 1), (chosen[index], -1)], least=0)
        if value in problem["results"]:
            programme.row([(at_hand[0], 1)], least=1)
    return programme.least()


def values_of(ports):
    return {value for value, _ in ports}


def wait_for_each_other(groups):
    """Whether two groups without a common node each read an output of the other."""
    return any(not set(one["nodes"]) & set(other["nodes"])
               and values_of(one["outputs"]) & values_of(other["inputs"])
               and values_of(other["outputs"]) & values_of(one["inputs"])
               for one, other in itertools.combinations(groups, 2))


def features_of(case):
    """The features of a case that make it interesting: of the problem, and of its cheapest
    placement."""
    problem, solution = case["problem"], case["solution"]
    chosen = [problem["candidates"][index] for index in solution["chosen"]]
    groups = [one for one in problem["candidates"] if len(one["nodes"]) > 1]
    readers = collections.Counter((value, layout) for one in chosen for value, layout in one["inputs"])
    far = (problem["layouts"] + 1) // 2
    has_two_devices = problem["layouts"] > 2 and all(
        prices[from_ * problem["layouts"] + to] is None
        for prices in problem["conversion_prices"] for from_ in range(problem["layouts"])
        for to in range(problem["layouts"]) if (from_ < far) != (to < far) and from_ + to != far)
    layouts = {layout for one in chosen for _, layout in one["inputs"] + one["outputs"]}
    return {
        "group of several outputs": any(len(one["outputs"]) > 1 and len(one["nodes"]) > 1
                                        for one in chosen),
        "groups wait for each other": wait_for_each_other(groups),
        "searched further": solution["networks"] > 1,
        "shared conversion": any(readers[value, to] > 1 for value, _, to in solution["conversions"]),
        "limit costs something": solution["seconds"] != case["seconds_without_limit"],
        "pin costs something": solution["seconds"] != case["seconds_without_pins"],
        "both devices used": has_two_devices and min(layouts) < far <= max(layouts),
    }


@pytest.mark.parametrize("part", range(SLICES))
def test_no_solver_finds_less(bin_dir, is_long, part):
    share = (LONG_CASES if is_long else CASES) // SLICES
    lines = subprocess.run([bin_dir / "place_cases", str(part * share), str(share), str(NODES)],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == share
    seen = collections.Counter()
    for line in lines:
        case = json.loads(line)
        solution = case["solution"]
        assert solution["violation"] == "", case["seed"]
        assert solution["seconds"] == solution["lower_bound"], case["seed"]
        least = least_by_highs(case["problem"])
        if least is None:
            assert solution["seconds"] is None, case["seed"]
            continue
        assert solution["seconds"] == pytest.approx(least, abs=1e-4), case["seed"]
        features = features_of(case)
        seen["solved"] += 1
        seen.update({name: int(has) for name, has in features.items()})
    print(dict(seen))
    assert seen["solved"] > share / 2
    assert all(seen[name] > 0 for name in features), seen
