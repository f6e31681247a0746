#!/usr/bin/env python3
"""When somebody speaks in a stream of sound: a recurrent model with branches, one chunk a run.

The model (silero-vad, MIT; see README.md) gets 512 samples, the last 64 samples before them, and its
state, which it gives back. The state stays in one memory, which each run reads and writes; so do the
samples. Without a WAV file (16 kHz, mono, 16 bits) it listens to noise with a voice-like buzz in it.

example: PYTHONPATH=build/release/python .venv/bin/python examples/10_voice/voice.py silero_vad_16k_op15.onnx"""

import argparse
import sys
import time
import wave

import numpy as np
import tessera

RATE = 16000  # samples a second
CHUNK = 512
CONTEXT = 64


def read_wav(path):
    """Samples in [-1, 1)."""
    with wave.open(path) as file:
        form = (file.getframerate(), file.getnchannels(), file.getsampwidth())
        if form != (RATE, 1, 2):
            sys.exit(f"{path}: expected 16000 samples a second, 1 channel and 2 bytes a sample, "
                     f"found {form[0]}, {form[1]} and {form[2]}")
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    return samples.astype(np.float32) / 32768


def made_sound(chunks):
    """Noise; in every second quarter of it a buzz of 120 Hz with the resonances of an open vowel."""
    count = chunks * CHUNK
    at = np.arange(count) / RATE
    noise = np.random.default_rng(0).standard_normal(count) * 0.01
    buzz = sum(np.sin(2 * np.pi * 120 * k * at) * (
        np.exp(-((120 * k - 730) / 200) ** 2) + np.exp(-((120 * k - 1090) / 250) ** 2))
        for k in range(1, 30))
    syllables = np.clip(np.sin(2 * np.pi * 3 * at), 0, 1)
    is_voiced = (4 * np.arange(count) // count) % 2 == 1
    return (noise + 0.2 * buzz * syllables * is_voiced).astype(np.float32)


class Listener:
    """The model with its state. listen() takes the next chunk and gives the probability of a voice."""

    def __init__(self, model):
        self._executor = model.bind(
            {"input": (1, CONTEXT + CHUNK), "state": (2, 1, 128)}, threads=1,
            state_pairs=[("state", "stateN")])
        self._samples = np.zeros((1, CONTEXT + CHUNK), np.float32)
        self._state = np.zeros((2, 1, 128), np.float32)
        self._probability = np.zeros((1, 1), np.float32)
        self._executor.bind_input("input", self._samples)
        self._executor.bind_input("sr", np.array(RATE))
        self._executor.bind_input("state", self._state)
        self._executor.bind_output("stateN", self._state)
        self._executor.bind_output("output", self._probability)

    def listen(self, chunk):
        self._samples[0, :CONTEXT] = self._samples[0, -CONTEXT:]
        self._samples[0, CONTEXT:] = chunk
        self._executor.run()
        return float(self._probability[0, 0])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="silero_vad_16k_op15.onnx")
    parser.add_argument("wav", nargs="?", help="what to listen to (default: a made sound)")
    parser.add_argument("--chunks", type=int, default=1000,
                        help="of 32 ms, of the made sound (default: 1000)")
    arguments = parser.parse_args()
    sound = made_sound(arguments.chunks) if arguments.wav is None else read_wav(arguments.wav)

    listener = Listener(tessera.load(arguments.model))
    chunks = sound[:len(sound) // CHUNK * CHUNK].reshape(-1, CHUNK)
    times = []
    is_voice = False
    for index, chunk in enumerate(chunks):
        begin = time.perf_counter()
        probability = listener.listen(chunk)
        times.append(time.perf_counter() - begin)
        if (probability > 0.5) != is_voice:
            is_voice = not is_voice
            print(f"{index * CHUNK / RATE:8.2f} s: {'a voice' if is_voice else 'none'}"
                  f" ({probability:.2f})")
    median = float(np.median(times))
    print(f"{len(chunks)} chunks, {1e6 * median:.0f} us each (median), "
          f"{CHUNK / RATE / median:.0f} times faster than they are heard")
    return 0


if __name__ == "__main__":
    sys.exit(main())
