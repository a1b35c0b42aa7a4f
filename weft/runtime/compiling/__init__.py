"""From a saved text to a program that may be swapped in, beside the performance and without disturbing it."""
