"""The texts that the prompt and notebooks show."""

import html.parser

import numpy as np
import pytest
from small_models import node

MAX_LETTERS = 600
STEPS = 400


@pytest.fixture
def long_chain(tessera, save_model):
    nodes = [node("Sin" if index % 2 else "Cos", f"v{index}", f"v{index + 1}",
                  f"<b>node{index}</b>") for index in range(STEPS)]
    inputs = {"v0": [2, 3]} | {f"unread{index}": [1] for index in range(40)}
    return tessera.load(save_model(nodes, inputs, {f"v{STEPS}": [2, 3]}))


def test_a_large_model_has_short_texts(tessera, long_chain):
    executor = long_chain.bind(backends=["reference"])
    executor.record_steps()
    executor.run({"v0": np.zeros((2, 3), np.float32)})
    plan, described = executor.plan(), long_chain.describe()
    assert len(plan.steps) == STEPS
    objects = [long_chain, executor, plan, described, plan.steps[0], plan.memory, plan.tuning,
               described.nodes[0], described.passes[0], executor.cache_report(), executor.shapes(),
               executor.steps[0], executor.stages[0], tessera.backends()[0], tessera.Backends(),
               tessera.Pin("a", "b"), tessera.Exclusion("a"),
               tessera.csr_array([0, 1], [2], np.ones(1, np.float32), (1, 3)), *executor.inputs]
    for each in objects:
        text = repr(each)
        assert 0 < len(text) < MAX_LETTERS and text.count("\n") < 4, text
        assert type(each).__name__ in text and " object at 0x" not in text, text


def test_a_text_says_how_to_see_the_rest(long_chain):
    executor = long_chain.bind(backends=["reference"])
    assert f"{STEPS} steps (reference {STEPS})" in repr(executor.plan())
    assert "dataclasses.asdict()" in repr(executor.plan())
    assert "and 35 more" in repr(long_chain)
    assert "steps" in repr(executor.plan().memory) or "blocks=[" in repr(executor.plan().memory)


def test_small_descriptions_are_whole(tessera, doubling_model):
    (value,) = tessera.load(doubling_model).inputs
    assert repr(value) == ("ValueDescription(name='x', type='float32', shape=('rows', 3), "
                           "is_read=True, index_limit=None, text='float32 rowsx3', "
                           "layout='row_major')")


class Cells(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.texts = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, text):
        self.texts.append(text)


def test_a_plan_is_a_table_in_notebooks(long_chain):
    executor = long_chain.bind(backends=["reference"])
    cells = Cells()
    cells.feed(executor.plan()._repr_html_())
    # Names of the model's nodes are text and no tags.
    assert "b" not in cells.tags
    assert "<b>node0</b>" in cells.texts
    assert {"Cos", "reference", "float32 2x3 row_major"} <= set(cells.texts)
    shown = cells.tags.count("tr") - 1
    assert f"and {STEPS - shown} more steps: " in cells.texts
    assert "refused by" in cells.texts
