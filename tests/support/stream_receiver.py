"""A program that receives a stream: `python -m tests.support.stream_receiver ADDRESS SECONDS`. It says when it listens,
and when it receives. What comes may be black and silent at first: it ends so many seconds after. Then it prints a line
of JSON: the time and the brightness of each picture, the time and the level of each block of sound, and its frequency.
"""

from __future__ import annotations

import json
import sys

import av
import numpy as np

# Pictures are darker than this, and sound is softer, before anything comes.
_DARK, _SILENT = 64.0, 0.1


def main(address: str, seconds: float) -> None:
    """Receives for this many seconds of the stream."""
    options = {"listen": "1"} if address.startswith("rtmp") else {}
    pictures, blocks, tone = [], [], []
    print("listening", flush=True)
    with av.open(address, options=options, timeout=30) as container:
        first = None
        for number, frame in enumerate(container.decode(*container.streams)):
            if number == 0:
                print("receiving", flush=True)
            at, is_dark = float(frame.time or 0), True
            if first is not None and at - first > seconds:
                break
            if isinstance(frame, av.VideoFrame):
                level = float(frame.to_ndarray(format="gray").mean())
                is_dark = level < _DARK
                pictures.append((at, level))
            elif isinstance(frame, av.AudioFrame):
                samples = frame.to_ndarray()[0]
                is_dark = not (np.abs(samples) > _SILENT).any()
                blocks.append((at, float(np.abs(samples).max())))
                tone.append(samples)
            first = at if first is None and not is_dark else first
    sound = np.concatenate(tone) if tone else np.zeros(1)
    loud = sound[np.flatnonzero(np.abs(sound) > _SILENT)[:1].sum() :]
    spectrum = np.abs(np.fft.rfft(loud * np.hanning(len(loud))))
    print(json.dumps({"pictures": pictures, "sound": blocks, "hertz": spectrum.argmax() * 48_000 / len(loud)}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
