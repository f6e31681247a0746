"""Runs a program whose output or errors are a pseudo-terminal, and reads all that it wrote there."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading

# Written after the program's last byte. Bytes that a terminal still holds when its last writer
# closes it may be lost on a busy machine, so this process keeps it open and reads up to this mark
# instead.
_END = b"\0the program has ended\0"


def run_on_terminal(command, stream, columns=100, on_piece=None, timeout=120, **options):
    """Runs `command` with `stream` ("stdout" or "stderr") on a terminal of `columns` columns and 50
    rows. Returns the CompletedProcess, whose `stream` holds the bytes that arrived there. `on_piece`
    is called with each piece of them as it arrives; `options` are those of subprocess.Popen()."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    shown = bytearray()

    def read():
        while not shown.endswith(_END):
            piece = os.read(outer, 65536)  # what has arrived, at most a page
            shown.extend(piece)
            if on_piece is not None:
                on_piece(piece.removesuffix(_END))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        with subprocess.Popen(command, **{stream: inner}, **options) as process:
            try:
                output, errors = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
    finally:
        os.write(inner, _END)
        reader.join(timeout=20)
        assert not reader.is_alive(), "the end has to arrive"
        os.close(inner)
        os.close(outer)
    texts = {"stdout": output, "stderr": errors, stream: bytes(shown.removesuffix(_END))}
    return subprocess.CompletedProcess(command, process.returncode, **texts)
