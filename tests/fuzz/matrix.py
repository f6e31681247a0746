"""Every op in every version, with one of its inputs corrupted: as a constant, fed, and of unknown
size.

List-like inputs (integers with few dimensions, such as axes, shapes, pads, indices and k; small
lists of floats, such as scales) become empty, shorter, longer, out of range and negative. All
inputs get dimensions of 0, dimensions that contradict those of other inputs, and other ranks."""

import dataclasses
import hashlib
import random

import numpy as np

from runner import JUDGES
from seeds import SUPPLIES, can_supply, case_of

OUT_OF_RANGE = (7, 1 << 31, 1 << 33, 1 << 62, (1 << 63) - 1)
NEGATIVE = (-1, -2, -7, -(1 << 33), -(1 << 63))
NOT_NUMBERS = (0.0, -1.0, np.nan, np.inf, -np.inf, 1e30)


@dataclasses.dataclass
class MatrixCase:
    name: str
    make: object  # a function that returns the fuzz_case.Case
    what: list  # how each run's input is corrupted; "" if it is valid
    group: str = ""  # of cases that corrupt the same input of the same seed
    is_known: bool = False  # all values and sizes are known at bind


def is_list_like(array):
    return array.ndim <= 1 and array.size <= 16 and array.dtype.kind in "iuf"


def spoilt_elements(array):
    """(what, array) with some element out of range; also for index inputs that are not lists."""
    if array.dtype.kind not in "iuf" or not array.size:
        return
    numbers = NOT_NUMBERS if array.dtype.kind == "f" else (*OUT_OF_RANGE, 0, *NEGATIVE)
    for number in numbers:
        if array.dtype.kind != "f":
            limits = np.iinfo(array.dtype)
            if not limits.min <= number <= limits.max:
                continue
        # The first and the last element, to test both ends of a loop.
        for place in sorted({0, array.size - 1}):
            changed = array.reshape(-1).copy()
            with np.errstate(over="ignore"):
                changed[place] = number
            yield f"[{place}]={number}", changed.reshape(array.shape)


def spoilt_list(array):
    if array.ndim == 1:
        yield "empty", array[:0]
        yield "short", array[:-1]
        yield "long", np.concatenate([array, array[-1:] if array.size else
                                      np.ones(1, array.dtype)])
        yield "longer", np.concatenate([array, array, np.ones(9, array.dtype)])
        for number in (7, 1 << 33, -1, -(1 << 33)) if array.dtype == np.int64 else ():
            yield f"and {number}", np.concatenate([array, np.array([number])])
        yield "one", array[:1]
        yield "reversed", array[::-1].copy()
        yield "in rows", array.reshape(1, -1)
        if array.size:
            yield "scalar", array[0].reshape(())
    else:
        yield "list", array.reshape(1)
        yield "empty", array.reshape(1)[:0]
        yield "twice", np.repeat(array.reshape(1), 2)


def spoilt_dimensions(array):
    """(what, array) with dimensions of 0, one more, one less, and other ranks."""
    for axis in range(array.ndim):
        if array.shape[axis] == 0:
            continue
        yield f"dim {axis} = 0", np.take(array, [], axis)
        more = np.concatenate([array, np.take(array, [0], axis)], axis)
        yield f"dim {axis} + 1", more
        if array.shape[axis] > 1:
            yield f"dim {axis} - 1", np.take(array, range(array.shape[axis] - 1), axis)
            yield f"dim {axis} = 1", np.take(array, [0], axis)
    if array.ndim > 1:
        yield "all dims 0", np.zeros([0] * array.ndim, array.dtype)
    if array.size:
        yield "rank + 1", array[None]
        yield "rank - 1", array.reshape(-1)[0].reshape(()) if array.ndim == 1 else (
            array[0] if array.ndim else array.reshape(1))
        if array.ndim > 1:
            yield "rank 0", array.reshape(-1)[0].reshape(())
            yield "rank 1", array.reshape(-1)


def spoilt(array):
    seen = set()
    ways = [*spoilt_elements(array)] if array.dtype.kind in "iu" or is_list_like(array) else []
    if is_list_like(array):
        ways += spoilt_list(array)
    ways += spoilt_dimensions(array)
    for what, changed in ways:
        key = (changed.shape, changed.tobytes())
        if key not in seen and key != (array.shape, array.tobytes()):
            seen.add(key)
            yield what, np.ascontiguousarray(changed).reshape(changed.shape)


def cases_of(seed, supplies=SUPPLIES):
    """The cells of one seed: for each input and supply, one case with a run for each corruption and
    valid runs in between; constants need one case for each corruption. The other inputs: lists are
    constant, the rest is fed; if one input is of unknown size, a second case makes the others of
    unknown size too."""
    for index, array in enumerate(seed.arrays):
        if array is None:
            continue
        ways = list(spoilt(array))
        for supply in supplies:
            if not can_supply(seed, array, supply):
                continue
            for others in ("fed", "dynamic") if supply in ("dims", "unknown") else ("fed",):
                yield from cells(seed, index, supply, others, ways)
    yield from empty_cells(seed)


def supply_of_other(seed, array, others):
    if others == "dynamic":
        return "dims" if can_supply(seed, array, "dims") else "fed"
    return "constant" if is_list_like(array) and array.dtype.kind in "iu" else "fed"


def later(seed, arrays, supplies):
    """Cases are created only when they are run, because a sample skips most of them."""
    return lambda: case_of(seed, arrays, supplies)


def cells(seed, index, supply, others, ways):
    supplies = [None if array is None else supply if at == index
                else supply_of_other(seed, array, others) for at, array in enumerate(seed.arrays)]
    name = f"{seed.label} {seed.name} {seed.input_names[index]}#{index} {supply}" + (
        " among dynamic ones" if others == "dynamic" else "")
    arrays = seed.arrays

    group = f"{seed.label} {seed.name} {index}"

    def with_(changed):
        return [*arrays[:index], changed, *arrays[index + 1:]]

    usable = [(what, changed) for what, changed in ways if can_supply(seed, changed, supply)]
    if supply == "constant":
        for what, changed in usable:
            yield MatrixCase(f"{name} {what}", later(seed, [with_(changed)], supplies), [what],
                             group, is_known=True)
        return
    if supply == "unknown":
        yield many_runs(name, group, seed, index, supplies, usable)
        return
    for rank in sorted({changed.ndim for _, changed in usable}):
        of_rank = [(what, changed) for what, changed in usable if changed.ndim == rank]
        if rank == arrays[index].ndim:
            yield many_runs(name, group, seed, index, supplies, of_rank)
            if supply == "fed":
                # Binds to the wrong shape instead of switching to it.
                for what, changed in of_rank:
                    if changed.shape != arrays[index].shape:
                        yield MatrixCase(f"{name} {what}",
                                         later(seed, [with_(changed)], supplies), [what], group)
        else:
            for what, changed in of_rank:
                yield MatrixCase(f"{name} {what}", later(seed, [with_(changed)], supplies), [what],
                                 group)


def empty_cells(seed):
    """Sets a dimension to 0 in all inputs that share it, such as the batch."""
    shapes = [array.shape for array in seed.arrays if array is not None]
    for axis in range(max((len(shape) for shape in shapes), default=0)):
        for size in sorted({shape[axis] for shape in shapes if len(shape) > axis and shape[axis]}):
            arrays = [np.take(array, [], axis) if array is not None and array.ndim > axis
                      and array.shape[axis] == size and not is_list_like(array) else array
                      for array in seed.arrays]
            if all(a is b for a, b in zip(arrays, seed.arrays)):
                continue
            for supply in ("fed", "dynamic"):
                supplies = [None if array is None else supply_of_other(seed, array, supply)
                            for array in arrays]
                what = f"axis {axis} of {size} = 0"
                yield MatrixCase(f"{seed.label} {seed.name} all {supply} {what}",
                                 later(seed, [arrays], supplies), [what],
                                 f"{seed.label} {seed.name} all")


def many_runs(name, group, seed, index, supplies, ways):
    what, arrays = [""], [list(seed.arrays)]
    for way, changed in ways:
        what.append(way)
        arrays.append([*seed.arrays[:index], changed, *seed.arrays[index + 1:]])
    # The executor must still work for the next run.
    what.append("")
    arrays.append(list(seed.arrays))
    return MatrixCase(name, later(seed, arrays, supplies), what, group)


def check_all(collector, cases, judges=JUDGES):
    """Returns the findings of `cases`, which are in the order of cases_of()."""
    refused, group, new = set(), "", []
    for cell in cases:
        if cell.group != group:
            refused, group = set(), cell.group
        op = cell.name.split("-")[0]
        new += collector.check(op, cell.name, cell.make(), cell.what, judges,
                               refused=refused if cell.group else None)
        if cell.is_known:
            refused |= collector.newest_refused
    return new


def shuffled(seeds, number):
    """All seeds, the smallest of each op first, in an order determined by `number`."""
    source = random.Random(number)
    found = []
    for rank in range(max(map(len, seeds.values()), default=0)):
        of_rank = [of_op[rank] for of_op in seeds.values() if len(of_op) > rank]
        source.shuffle(of_rank)
        found += of_rank
    return found


def is_drawn(group, share):
    """Whether the cases of a group belong to a sample, which is always the same."""
    digest = hashlib.sha256(group.encode()).digest()
    return int.from_bytes(digest[:4], "little") < share * (1 << 32)
