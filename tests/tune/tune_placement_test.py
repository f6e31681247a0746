"""`tessera tune` without --all: measures only candidates that could win, runs whole plans, and
respects its budget."""

import json

import numpy as np
import pytest
from programs import run_program
from small_models import chain, node, normal, save_model

# These tests measure times or send SIGINT.
pytestmark = pytest.mark.alone

CHANNELS = 48
SIDE = 56
LAYERS = 6


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Convolutions with residual sums, which take several milliseconds."""
    rng = np.random.default_rng(2)
    nodes, weights, at = [], {}, "x"
    for layer in range(LAYERS):
        side = 3 if layer % 2 else 1
        weights[f"w{layer}"] = normal(rng, CHANNELS, CHANNELS, side, side) * 0.1
        nodes.append(node("Conv", [at, f"w{layer}"], f"c{layer}", f"conv{layer}",
                          pads=[side // 2] * 4))
        nodes.append(node("Relu", f"c{layer}", f"r{layer}", f"relu{layer}"))
        nodes.append(node("Add", [f"r{layer}", at], f"a{layer}", f"add{layer}"))
        at = f"a{layer}"
    shape = [1, CHANNELS, SIDE, SIDE]
    return save_model(tmp_path_factory.mktemp("stack") / "stack.onnx", nodes, {"x": shape},
                      {at: shape}, weights)


@pytest.fixture(scope="module")
def call(tessera_binary):
    def run(*arguments):
        return run_program(tessera_binary, *arguments).stdout

    return run


@pytest.fixture(scope="module")
def tuned(call, model, tmp_path_factory):
    costs = tmp_path_factory.mktemp("costs") / "costs.json"
    report = json.loads(call("tune", model, "--threads", 1, "--json", "--output", costs))
    return report, costs


def test_little_is_measured_and_only_that_is_chosen(tuned):
    report, _ = tuned
    tuning = report["tuning"]
    assert 0 < tuning["measured_count"] < tuning["offered_count"]
    assert not tuning["is_stopped"] and not tuning["is_out_of_time"]
    chosen = [one for one in report["candidates"] if one["is_chosen"]]
    assert {node for one in chosen for node in one["nodes"]} == {
        f"{kind}{layer}" for kind in ("conv", "relu", "add") for layer in range(LAYERS)}
    for one in chosen:
        assert one["verdict"] == "fine", one


def test_what_cannot_win_is_not_measured(needs_a_library, tuned):
    report, _ = tuned
    assert any(one["verdict"] == "not_measured" for one in report["candidates"])


def test_plans_run_as_wholes_and_the_fastest_is_taken(tuned):
    placement = tuned[0]["placement"]
    contenders = placement["contenders"]
    assert contenders and placement["measured_us"] == pytest.approx(contenders[0]["time"]["time_us"])
    assert [one["is_chosen"] for one in contenders] == [True] + [False] * (len(contenders) - 1)
    # If several plans are equally fast within noise, the first is chosen.
    assert placement["measured_us"] <= 1.02 * min(one["time"]["time_us"] for one in contenders) + 1e-6
    for one in contenders:
        assert 0 < one["time"]["low_us"] <= one["time"]["time_us"] <= one["time"]["high_us"]
    assert "chosen" in {one["contender"] for one in contenders}
    assert placement["isolated_us"] > 0 and placement["is_proven_optimal"] is True


def test_what_was_measured_serves_the_next_process(call, model, tuned):
    _, costs = tuned
    again = json.loads(call("tune", model, "--threads", 1, "--json", "--costs", costs))
    assert again["tuning"]["measured_count"] <= tuned[0]["tuning"]["measured_count"] / 2
    call("run", model, "--threads", 1, "--costs", costs, "--random", 1)


@pytest.mark.parametrize("seconds", [0.001, 0.3])
def test_time_is_kept(call, model, seconds):
    report = json.loads(call("tune", model, "--threads", 1, "--json", "--tune-budget", seconds))
    tuning = report["tuning"]
    assert tuning["is_out_of_time"] and tuning["tuning_us"] < 1e6 * (seconds + 3)
    # Then the known prices decide, and every node has a candidate.
    assert sum(len(one["nodes"]) for one in report["candidates"] if one["is_chosen"]) >= 3 * LAYERS
    placement = report["placement"]
    assert 0 < placement["lower_bound_us"] <= placement["predicted_us"] * (1 + 1e-9)


def test_where_nothing_was_measured_the_choice_is_that_without_prices(call, model):
    report = json.loads(call("tune", model, "--threads", 1, "--json", "--tune-budget", 0.0005))
    assert report["tuning"]["is_out_of_time"] and report["tuning"]["measured_count"] == 0
    plain = json.loads(call("explain", model, "--threads", 1, "--json"))
    assert sorted((one["backend"], one["algorithm"])
                  for one in report["candidates"] if one["is_chosen"]) == sorted(
        (step["backend"], step["algorithm"]) for step in plain["steps"]
        if not step["op"].startswith("convert"))


def test_a_budget_that_is_named_holds_for_short_graphs_too(needs_a_library, call, tmp_path):
    """Without a budget, a graph that takes less than 0.2 ms gets half a second."""
    ops = ["Tanh", "Softmax", "Sigmoid", "Abs", "Erf", "Softplus", "Elu", "HardSigmoid", "Softsign",
           "LogSoftmax", "Selu", "LeakyRelu", "HardSwish", "Mish", "Ceil", "Exp"]
    shape = [1, 16, 7, 8]
    path = save_model(tmp_path / "short.onnx", chain(*ops * 3, *ops[::-1] * 3), {"x": shape},
                      {"y": shape}, opset=18)
    default, named = (json.loads(call("tune", path, "--threads", 1, "--json", *budget))
                      for budget in ((), ("--tune-budget", 60)))
    assert default["tuning"]["tuning_us"] < 1e6
    assert not named["tuning"]["is_out_of_time"]
    assert default["tuning"]["is_out_of_time"]


def test_wrong_budgets_are_refused(tessera_binary, model):
    for text in ("0", "-1", "soon"):
        done = run_program(tessera_binary, "tune", model, "--tune-budget", text, code=2)
        assert "--tune-budget" in done.stderr


def chosen_by(report):
    return sorted((one["nodes"], one["backend"], one["algorithm"], one["thread_count"])
                  for one in report["candidates"] if one["is_chosen"])


def test_another_process_with_these_costs_takes_the_winner(call, model, tuned):
    report, costs = tuned
    table = json.loads(costs.read_text())
    plan, = table["plans"]
    assert len({node for step in plan["steps"] for node in step["nodes"]}) == 3 * LAYERS
    again = json.loads(call("explain", model, "--threads", 1, "--json", "--costs", costs))
    assert chosen_by(again) == chosen_by(report)


def test_a_plan_that_is_not_offered_any_more_is_passed_over(call, model, tuned):
    _, costs = tuned
    table = json.loads(costs.read_text())
    table["plans"][0]["steps"][0]["algorithm"] = "nobody's"
    other = costs.parent / "unknown_plan.json"
    other.write_text(json.dumps(table))
    call("run", model, "--threads", 1, "--costs", other, "--random", 1)


def test_where_time_went_is_told(tuned):
    tuning = tuned[0]["tuning"]
    assert sum(phase["phase_us"] for phase in tuning["phases"]) == pytest.approx(tuning["tuning_us"], abs=2e5)
    assert {"build", "check", "time", "choose", "time_steps", "race"} <= {
        phase["phase"] for phase in tuning["phases"]}


def small_model(path, *ops):
    return save_model(path, chain(*ops), {"x": [4, 64]}, {"y": [4, 64]})


def test_models_of_one_set_of_backends_share_what_was_measured(tessera, tmp_path):
    first = small_model(tmp_path / "first.onnx", "Relu", "Softmax")
    second = small_model(tmp_path / "second.onnx", "Relu", "Softmax")
    backends = tessera.Backends()
    tunings = [tessera.load(file, backends=backends).bind(threads=1, optimize=True).plan().tuning
               for file in (first, second)]
    assert tunings[0].measured > 0 and tunings[1].measured == 0
    strangers = tessera.load(second, backends=tessera.Backends())
    alone = strangers.bind(threads=1, optimize=True, cache_dir=tmp_path / "none")
    assert alone.plan().tuning.measured > 0


def test_small_graphs_take_little_time_each_and_together(tessera, tmp_path):
    ops = ["Relu", "Softmax", "Tanh", "Sigmoid", "Abs", "Neg", "Exp"]
    backends = tessera.Backends()
    seconds = []
    for index in range(30):
        names = [ops[(index * step + at) % len(ops)] for at, step in enumerate((1, 2, 3, 5))]
        file = small_model(tmp_path / f"{index}.onnx", *names)
        model = tessera.load(file, backends=backends)
        seconds.append(model.bind(threads=1, optimize=True).plan().tuning.seconds)
    assert max(seconds) < 0.3, "a tenth of a second, on a busy machine"
    assert sum(seconds) < 2


def test_nodes_that_are_over_at_once_are_offered_for_one_thread(tessera, call, tmp_path):
    file = small_model(tmp_path / "small.onnx", "Relu", "Softmax", "Tanh")
    backends = tessera.Backends()
    model = tessera.load(file, backends=backends)
    executor = model.bind(threads=2, optimize=True, cache_dir=tmp_path)
    tuning = executor.plan().tuning
    assert tuning.measured > 0
    values = np.linspace(-1, 1, 256, dtype=np.float32).reshape(4, 64)
    tuned, = executor.run({"x": values})
    plain, = model.bind(threads=2, optimize=False).run({"x": values})
    np.testing.assert_allclose(tuned, plain, rtol=1e-5, atol=1e-6)
    # A user who sets a budget wants more candidates.
    report = json.loads(call("tune", file, "--threads", 2, "--json", "--tune-budget", 5))
    assert {one["thread_count"] for one in report["candidates"]} == {1, 2}
    assert report["tuning"]["offered_count"] > tuning.offered
    short = json.loads(call("tune", file, "--threads", 2, "--json"))
    assert {one["thread_count"] for one in short["candidates"]} == {1}
    assert all(one["verdict"] == "fine" for one in short["candidates"] if one["is_chosen"])
