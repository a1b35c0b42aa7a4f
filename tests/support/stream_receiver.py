"""A program that receives a stream: `python -m tests.support.stream_receiver ADDRESS SECONDS`. It prints a line of
JSON: the time and the brightness of each picture, the time and the level of each block of sound, and its frequency."""

from __future__ import annotations

import json
import sys

import av
import numpy as np


def main(address: str, seconds: float) -> None:
    """Receives for this many seconds of the stream."""
    options = {"listen": "1"} if address.startswith("rtmp") else {}
    pictures, blocks, tone = [], [], []
    print("listening", flush=True)
    with av.open(address, options=options, timeout=30) as container:
        first = None
        for frame in container.decode(*container.streams):
            at = float(frame.time or 0)
            first = at if first is None else first
            if at - first > seconds:
                break
            if isinstance(frame, av.VideoFrame):
                pictures.append((at, float(frame.to_ndarray(format="gray").mean())))
            elif isinstance(frame, av.AudioFrame):
                samples = frame.to_ndarray()[0]
                blocks.append((at, float(np.abs(samples).max())))
                tone.append(samples)
    sound = np.concatenate(tone) if tone else np.zeros(1)
    loud = sound[np.flatnonzero(np.abs(sound) > 0.1)[:1].sum() :]
    spectrum = np.abs(np.fft.rfft(loud * np.hanning(len(loud))))
    print(json.dumps({"pictures": pictures, "sound": blocks, "hertz": spectrum.argmax() * 48_000 / len(loud)}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
