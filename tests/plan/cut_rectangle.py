"""Creates memory planning problems with known minimum memory: a rectangle, steps wide and bytes
high, is repeatedly cut in two, and its pieces are the buffers.

python cut_rectangle.py 300 --seed 7 > buffers.csv"""

import argparse
import random


def cut_rectangle(count, steps=1000, size=1 << 20, seed=0):
    """`count` pieces (lower, upper, bytes) that fill `steps` times `size`, in random order."""
    source = random.Random(seed)
    pieces = [(0, steps, 0, size)]
    while len(pieces) < count:
        place = source.randrange(len(pieces))
        left, right, bottom, top = pieces[place]
        if source.random() < 0.5:
            if right - left < 2:
                continue
            cut = source.randrange(left + 1, right)
            pieces[place : place + 1] = [(left, cut, bottom, top), (cut, right, bottom, top)]
        else:
            if top - bottom < 2:
                continue
            cut = source.randrange(bottom + 1, top)
            pieces[place : place + 1] = [(left, right, bottom, cut), (left, right, cut, top)]
    source.shuffle(pieces)
    return [(left, right, top - bottom) for left, right, bottom, top in pieces]


def csv_text(buffers):
    lines = [f"{index},{lower},{upper},{size}"
             for index, (lower, upper, size) in enumerate(buffers)]
    return "\n".join(["id,lower,upper,size", *lines]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(csv_text(cut_rectangle(arguments.count, seed=arguments.seed)), end="")


if __name__ == "__main__":
    main()
