"""Reads what a program writes to a pseudo-terminal."""

import os


def read_terminal(descriptor):
    """The bytes that arrive at `descriptor` until no process has the other end open. One os.read()
    returns only what is there at that moment, at most a page."""
    pieces = []
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # Linux reports this if the other end was closed
            break
        if not piece:
            break
        pieces.append(piece)
    return b"".join(pieces)
