"""Small models for the module tessera."""

import importlib

import pytest
import small_models
from small_models import node


@pytest.fixture(scope="session")
def ort(tessera):
    return importlib.import_module("tessera.onnxruntime")


@pytest.fixture
def save_model(tmp_path):
    """A function that writes a model of operator set 20 and returns its path."""

    def save(*arguments, name="model", **options):
        return small_models.save_model(tmp_path / f"{name}.onnx", *arguments, opset=20, name=name,
                                       **options)

    return save


@pytest.fixture
def doubling_model(save_model):
    """y = x + x, float32, with an unknown first dimension."""
    return save_model([node("Add", "x x", "y", "doubling")], {"x": ["rows", 3]}, {"y": ["rows", 3]})
