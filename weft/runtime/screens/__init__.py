"""The screens of a performance: a window, a terminal, or none."""
