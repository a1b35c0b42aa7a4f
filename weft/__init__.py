"""weft: a live-coding tool in which every picture and sound is a function of coordinates."""

__version__ = "0.1.0"
