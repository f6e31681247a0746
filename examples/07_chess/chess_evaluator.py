#!/usr/bin/env python3
"""A counterpart of chess_evaluator.cc in Python, on Tessera or on onnxruntime: it searches the same
game with the same network, and prints the same figures.

example: PYTHONPATH=build/release/python .venv/bin/python examples/07_chess/chess_evaluator.py
build/chess/model.onnx --runtime onnxruntime"""

import argparse
import importlib
import json
import os
import threading
import time

import numpy as np

START = time.monotonic()
MODULES = {"tessera": "tessera.onnxruntime", "onnxruntime": "onnxruntime"}
PIECES = 6
HISTORY = 8
EXPLORATION = 1.5
# For each square, the squares one step away.
STEPS = [[8 * rank + file
          for rank in range(max(0, square // 8 - 1), min(7, square // 8 + 1) + 1)
          for file in range(max(0, square % 8 - 1), min(7, square % 8 + 1) + 1)]
         for square in range(64)]
# Each piece as the other player sees it.
TURNED = np.array([0, *range(7, 13), *range(1, 7)], np.int8)


class Position:
    """The newest boards, from the side of the player to move; see search.h."""

    def __init__(self, boards, ply):
        self.boards = boards
        self.ply = ply

    @staticmethod
    def start():
        board = np.zeros(64, np.int8)
        board[:8] = (4, 2, 3, 5, 6, 3, 2, 4)
        board[8:16] = 1
        board[48:56] = 1 + PIECES
        board[56:] = board[:8] + PIECES
        return Position([board], 0)

    def after(self, move):
        moved = self.boards[0].copy()
        moved[move % 64] = moved[move // 64]
        moved[move // 64] = 0
        return Position([TURNED[board[::-1]] for board in (moved, *self.boards[:HISTORY - 1])],
                        self.ply + 1)

    def moves(self):
        board = self.boards[0].tolist()
        is_own = [0 < piece <= PIECES for piece in board]
        return np.array([64 * square + to for square in range(64) if is_own[square]
                         for to in STEPS[square] if not is_own[to]])

    def encode(self, planes):
        planes.fill(0)
        flat = planes.reshape(112, 64)
        for index, board in enumerate(self.boards):
            squares = np.flatnonzero(board)
            flat[13 * index + board[squares] - 1, squares] = 1
        flat[108] = self.ply % 2
        flat[109] = self.ply / 100
        flat[111] = 1


class Node:
    """A position of the tree; its children's numbers are arrays, so that NumPy compares them."""

    __slots__ = ("children", "is_pending", "moves", "priors", "value_sums", "visits")

    def __init__(self):
        self.moves = None
        self.is_pending = False


class Search:
    """The tree of one thread."""

    def __init__(self, root):
        self.root = root
        self.tree = Node()
        self.root_visits = 0
        self.answers = 0
        self.leaves = []

    def collect(self, count):
        """Up to `count` leaves, as pairs of the way to them and a position."""
        self.leaves = []
        while len(self.leaves) < count:
            node, position, path, visits = self.tree, self.root, [], self.root_visits
            while node.moves is not None:
                values = node.value_sums / np.maximum(node.visits, 1)
                child = int(np.argmax(values + EXPLORATION * np.sqrt(visits) * node.priors
                                      / (1 + node.visits)))
                path.append((node, child))
                visits = node.visits[child]
                position = position.after(int(node.moves[child]))
                node = node.children[child]
            if node.is_pending:
                break
            node.is_pending = True
            self.root_visits += 1
            for parent, child in path:
                parent.visits[child] += 1
                parent.value_sums[child] -= 1
            self.leaves.append((path, node, position))
        return [position for _, _, position in self.leaves]

    def add(self, policy, outcomes):
        for row, (path, leaf, position) in enumerate(self.leaves):
            value = float(outcomes[row, 0]) - float(outcomes[row, 2])
            for parent, child in reversed(path):
                value = -value
                parent.value_sums[child] += 1 + value
            leaf.moves = position.moves()
            scores = policy[row, leaf.moves].astype(np.float64)
            priors = np.exp(scores - scores.max())
            leaf.priors = priors / priors.sum()
            leaf.visits = np.zeros(len(priors))
            leaf.value_sums = np.zeros(len(priors))
            leaf.children = [Node() for _ in priors]
            leaf.is_pending = False
        self.answers += len(self.leaves)

    def best(self):
        """The most frequently examined move, and the number of its examinations."""
        if self.tree.moves is None or not self.tree.visits.any():
            return -1, 0
        best = int(np.argmax(self.tree.visits))
        return int(self.tree.moves[best]), int(self.tree.visits[best])


def root_of(thread):
    position = Position.start()
    for move in range(thread):
        position = position.after(int(position.moves()[thread + move]))
    return position


class Evaluator:
    """A session that up to `runs` threads use at once."""

    def __init__(self, ort, model, threads, runs):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.free = threading.Semaphore(runs)
        sizes = {value.name: np.prod(value.shape[1:]) for value in self.session.get_outputs()}
        self.outputs = [max(sizes, key=sizes.get),
                        next(name for name, size in sizes.items() if size == 3)]
        self.input = self.session.get_inputs()[0].name

    def run(self, planes):
        with self.free:
            return self.session.run(self.outputs, {self.input: planes})


def search(tree, evaluator, batch, is_done):
    planes = np.zeros((batch, 112, 8, 8), np.float32)
    while not is_done(tree):
        leaves = tree.collect(batch)
        for row, position in enumerate(leaves):
            position.encode(planes[row])
        tree.add(*evaluator.run(planes))


def measure(evaluator, arguments, threads):
    # A measured plan may replace the first one until then.
    for _ in range(arguments.warm_runs):
        evaluator.run(np.zeros((arguments.batch, 112, 8, 8), np.float32))
    trees = [Search(root_of(thread)) for thread in range(threads)]
    start = time.monotonic()

    def is_done(tree):
        if arguments.answers:
            return tree.answers >= arguments.answers
        return time.monotonic() - start >= arguments.seconds

    workers = [threading.Thread(target=search, args=(tree, evaluator, arguments.batch, is_done))
               for tree in trees]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.monotonic() - start
    move, visits = trees[0].best()
    answers = sum(tree.answers for tree in trees)
    return {"answers": answers, "answers_per_second": answers / seconds, "best_move": move,
            "best_visits": visits}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="an ONNX file with an open batch, as make_network.py writes")
    parser.add_argument("--runtime", choices=MODULES, default="tessera", help="(default: tessera)")
    parser.add_argument("--batch", type=int, default=8, help="positions at once (default: 8)")
    parser.add_argument("--search-threads", default="1,2,4", help="(default: 1,2,4)")
    parser.add_argument("--executors", type=int, default=0,
                        help="runs at once (default: as many as search threads or cores)")
    parser.add_argument("--seconds", type=float, default=3, help="for each row (default: 3)")
    parser.add_argument("--answers", type=int, default=0,
                        help="that each thread wants, in place of --seconds")
    parser.add_argument("--warm-runs", type=int, default=3, help="before each row (default: 3)")
    parser.add_argument("--first-only", action="store_true", help="end after the first answer")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    ort = importlib.import_module(MODULES[arguments.runtime])
    cores = len(os.sched_getaffinity(0))
    rows, evaluator, first = [], None, None
    for threads in map(int, arguments.search_threads.split(",")):
        executors = arguments.executors or min(threads, cores)
        evaluator = Evaluator(ort, arguments.model, max(1, cores // executors), executors)
        if first is None:
            planes = np.zeros((arguments.batch, 112, 8, 8), np.float32)
            Position.start().encode(planes[0])
            evaluator.run(planes)
            first = time.monotonic()
            if arguments.first_only:
                break
        rows.append({"search_threads": threads, "executors": executors,
                     "threads_of_executor": max(1, cores // executors),
                     **measure(evaluator, arguments, threads)})
    if arguments.json:
        print(json.dumps({"first_answer_ms": 1e3 * (first - START),
                          "first_answer_at_ns": int(1e9 * first), "rows": rows}))
        return
    print(f"start to first answer: {1e3 * (first - START):.1f} ms on {arguments.runtime}\n")
    print("search threads  executors  threads each  answers/s  best move  of answers")
    for row in rows:
        move = f"{row['best_move'] // 64}-{row['best_move'] % 64}"
        print(f"{row['search_threads']:14}  {row['executors']:9}  {row['threads_of_executor']:12}  "
              f"{row['answers_per_second']:9.1f}  {move:>9}  {row['answers']:10}")


if __name__ == "__main__":
    main()
