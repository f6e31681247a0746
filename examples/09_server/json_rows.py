"""Reads {"inputs": {NAME: ROW, ...}} into arrays, in pieces: a large body takes little memory beside
its bytes and its arrays, and threads of small requests get their turns meanwhile."""

import json
import re

import numpy as np

PIECE_BYTES = 32 << 10
MAX_BYTES_BESIDE_LISTS = 64 << 10
LEAST_BODY_LIMIT = 256 << 10
MAX_NUMBER_BYTES = 1000
# The most bytes of a number in a row: 17 digits with sign, point, exponent, comma and blanks.
BYTES_PER_NUMBER = 32

_STRING_OR_LIST = re.compile(rb'"(?:[^"\\]|\\.)*"|\[')
_NUMBER = rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_NUMBERS = re.compile(rb"[\[\],\s]*(?:" + _NUMBER + rb"(?:[\[\],\s]+|$))*")
_WORD = re.compile(rb"[^\[\],\s]+")
_END_OF_NUMBER = re.compile(rb"[\[\],\s]")
_BLANKS = b" \t\r\n"
_TO_BLANKS = bytes.maketrans(b"[],", b"   ")
_NUMBER_BYTES = b"0123456789+-.eE"
_TO_N = bytes.maketrans(_NUMBER_BYTES, b"n" * len(_NUMBER_BYTES))
_RUN = re.compile(rb"n+")
# More digits than any integer of 64 bits has: int() takes long for longer ones, or refuses them.
MAX_INTEGER_BYTES = 24


class WrongInput(Exception):
    """The body of a request cannot be a row. The text is for the client."""


def max_body_bytes(shapes):
    """The size of a body that any row of these shapes fits in."""
    numbers = sum(int(np.prod(shape, dtype=np.int64)) for shape in shapes.values())
    return LEAST_BODY_LIMIT + BYTES_PER_NUMBER * numbers


class _Scalar(str):
    """The text of a number outside of lists."""


class _List:
    """The position of a list in the body."""

    def __init__(self, begin, end):
        self.begin, self.end = begin, end


def _refuse_constant(text):
    raise WrongInput(f"expected JSON: {text} is no JSON")


def _end_of_list(body, begin):
    """The position after the list that begins at `begin`."""
    depth = 0
    for at in range(begin, len(body), PIECE_BYTES):
        piece = np.frombuffer(body, np.uint8, min(PIECE_BYTES, len(body) - at), at)
        steps = np.cumsum((piece == ord("[")).astype(np.int8) - (piece == ord("]")), dtype=np.int64)
        ends = np.flatnonzero(steps == -depth)
        # The first step of the first piece opens the list.
        ends = ends[ends > 0] if at == begin else ends
        if ends.size:
            return at + int(ends[0]) + 1
        depth += int(steps[-1])
    raise WrongInput("expected JSON: a list does not end")


def _without_lists(body):
    """The body with the number of each list, in brackets, in place of its elements; the lists."""
    parts, lists, begin, at = [], [], 0, 0
    size = 0  # of `parts`
    while True:
        left = MAX_BYTES_BESIDE_LISTS - size
        found = _STRING_OR_LIST.search(body, at, at + left)
        end = found.start() if found else len(body)
        if end - begin > left:
            raise WrongInput(f"expected at most {MAX_BYTES_BESIDE_LISTS} bytes beside lists of "
                             "numbers")
        if found and found[0] != b"[":
            at = found.end()
            continue
        parts.append(body[begin:end])
        if not found:
            return b"".join(parts), lists
        begin = at = _end_of_list(body, end)
        lists.append(_List(end, begin))
        parts.append(b"[%d]" % (len(lists) - 1))
        size = sum(map(len, parts))


def _structure(shape):
    """An array of this shape with n for each number, without blanks."""
    text = b"n"
    for length in reversed(shape):
        text = b"[" + ((text + b",") * (length - 1) + text if length else b"") + b"]"
    return text


def _structure_of(piece):
    """_structure() of a piece of the body, which is checked."""
    return _RUN.sub(b"n", piece.translate(_TO_N)).translate(None, _BLANKS)


def _explain_word(word):
    text = word[:40].decode("ascii", "backslashreplace")
    if text in ("NaN", "Infinity", "-Infinity"):
        return f"{text} is no JSON"
    return f"expected numbers in lists of equal lengths, found {text}"


def _check_numbers(piece):
    end = _NUMBERS.match(piece).end()
    if end < len(piece):
        # The match may have ended within the word that is no number.
        begin = max(piece.rfind(mark, 0, end) for mark in (b"[", b"]", b",", *map(bytes, zip(_BLANKS))))
        raise WrongInput(_explain_word(_WORD.search(piece, begin + 1)[0]))


def _refuse_range(word, dtype):
    limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    text = word.decode() if len(word) <= 40 else word[:40].decode() + "..."
    raise WrongInput(f"{text} is out of the range of {dtype} ({limits.min} to {limits.max})")


def _convert(piece, dtype):
    """The numbers of a piece, which is checked, as an array."""
    text = piece.translate(_TO_BLANKS)
    if not text.strip():
        return np.empty(0, dtype)  # np.fromstring() gives a number for blanks
    if dtype.kind not in "biu":
        wide = np.fromstring(text, np.float64, sep=" ")
        with np.errstate(over="ignore"):
            narrow = wide.astype(dtype)
        if not np.isfinite(narrow).all():
            _refuse_range(text.split()[int(np.argmin(np.isfinite(narrow)))], dtype)
        return narrow
    if any(mark in piece for mark in b".eE"):
        raise WrongInput(f"expected whole numbers ({dtype}), found fractions")
    words = text.split()
    limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    numbers = [int(word) if len(word) <= MAX_INTEGER_BYTES else None for word in words]
    for number, word in zip(numbers, words, strict=True):
        if number is None or not limits[0] <= number <= limits[1]:
            if dtype.kind == "b":
                raise WrongInput(f"expected 0 or 1 (bool), found {word[:40].decode()}")
            _refuse_range(word, dtype)
    return np.array(numbers, dtype)


def _end_of_piece(body, at, end):
    """The end of a piece that begins at `at` and does not split a number."""
    if at + PIECE_BYTES >= end:
        return end
    found = _END_OF_NUMBER.search(body, at + PIECE_BYTES, at + PIECE_BYTES + MAX_NUMBER_BYTES)
    if not found:
        raise WrongInput(f"expected numbers of at most {MAX_NUMBER_BYTES} characters")
    return found.start()


def _read_list(body, place, dtype, shape):
    array = np.empty(int(np.prod(shape, dtype=np.int64)), dtype)
    expected, seen, count, at = _structure(shape), 0, 0, place.begin
    while at < place.end:
        end = _end_of_piece(body, at, place.end)
        piece = bytes(body[at:end])
        if dtype.kind == "b":
            piece = piece.replace(b"true", b"1").replace(b"false", b"0")
        _check_numbers(piece)
        structure = _structure_of(piece)
        if not expected.startswith(structure, seen):
            raise WrongInput(f"expected the shape {list(shape)}, found {_found_shape(body, place)}")
        seen += len(structure)
        numbers = _convert(piece, dtype)
        array[count:count + numbers.size] = numbers
        count += numbers.size
        at = end
    if count < array.size or seen < len(expected):
        raise WrongInput(f"expected the shape {list(shape)}, found {_found_shape(body, place)}")
    return array.reshape(shape)


def _found_shape(body, place):
    """The shape of a small list, for the text of an error."""
    if place.end - place.begin > PIECE_BYTES:
        return "another one"
    try:
        return list(np.asarray(json.loads(body[place.begin:place.end])).shape)
    except (ValueError, RecursionError):
        return "lists of other lengths"


def _read_row(body, value, lists, dtype, shape):
    if isinstance(value, list):
        return _read_list(body, lists[int(value[0])], dtype, shape)
    is_bool = isinstance(value, bool) and dtype.kind == "b"
    if is_bool or isinstance(value, _Scalar):
        text = b"%d" % value if is_bool else value.encode()
        array = _convert(text, dtype)
        if shape:
            raise WrongInput(f"expected the shape {list(shape)}, found []")
        return array.reshape(())
    raise WrongInput(f"expected numbers in lists of equal lengths, found {json.dumps(value)[:40]}")


def read_inputs(body, types, shapes):
    """The inputs of a request, by name. Raises WrongInput.

    types, shapes: of a row of each input, by name."""
    text, lists = _without_lists(body)
    try:
        # Other encodings have other quotes and brackets than those found above.
        request = json.loads(text.decode("utf-8-sig"), parse_constant=_refuse_constant, parse_int=_Scalar,
                             parse_float=_Scalar)
    except (ValueError, RecursionError) as error:
        raise WrongInput(f"expected JSON: {error}") from None
    inputs = request.get("inputs") if isinstance(request, dict) else None
    if not isinstance(inputs, dict):
        raise WrongInput('expected {"inputs": {NAME: ROW, ...}}')
    if inputs.keys() != shapes.keys():
        raise WrongInput("expected the inputs " + ", ".join(sorted(shapes)) + "; found "
                         + (", ".join(sorted(inputs)) or "none"))
    read = {}
    for name, value in inputs.items():
        try:
            read[name] = _read_row(body, value, lists, np.dtype(types[name]), shapes[name])
        except WrongInput as error:
            raise WrongInput(f"input '{name}': {error}") from None
    return read


def write_array(array):
    """JSON of an array, in pieces."""
    if array.size <= PIECE_BYTES // 8 or array.ndim == 0:
        yield json.dumps(array.tolist(), allow_nan=False).encode()
        return
    if array.ndim == 1:
        step = PIECE_BYTES // 8
        parts = (json.dumps(array[at:at + step].tolist(), allow_nan=False)[1:-1].encode()
                 for at in range(0, array.size, step))
    else:
        parts = (b"".join(write_array(part)) for part in array)
    yield b"["
    for index, part in enumerate(parts):
        yield (b", " if index else b"") + part
    yield b"]"
