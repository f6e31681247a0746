#!/usr/bin/env python3
"""Writes a set of small networks with random weights:

  more_networks       of kinds that the zoo does not have: what users bring
  even_more_networks  of other kinds: speech, sequences, video, style transfer, windows of attention
  attention_networks  one attention each, in the sizes of real networks
  open_networks       with open dimensions: lengths of texts and sounds, sides of images, batches

networks/SET.py has them, a function each."""

import importlib
import pathlib
import sys

from harness.arguments import Parser
from networks.network_writer import NetworkWriter

import onnx

SETS = ("more_networks", "even_more_networks", "attention_networks", "open_networks")


def write_network(build, path, seed=0):
    """Writes the network to the file `path`, and makes its folder."""
    writer = NetworkWriter(seed)
    output = build(writer)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(writer.model(writer.inputs, output, opset=14, input_elements=writer.input_elements),
              path)


def main():
    parser = Parser(__doc__, "more_networks build/more_networks")
    parser.add_argument("set", choices=SETS, metavar="SET")
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR",
                        help="gets a folder for each network, with model.onnx in it")
    parser.option("--seed", 0, "of the weights", int)
    arguments = parser.parse()
    networks = importlib.import_module(f"networks.{arguments.set}").NETWORKS
    for name, build in networks.items():
        path = arguments.folder / name / "model.onnx"
        write_network(build, path, arguments.seed)
        print(path)


if __name__ == "__main__":
    sys.exit(main())
