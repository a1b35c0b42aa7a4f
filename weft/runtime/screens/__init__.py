"""Where a performance is seen: a window, a terminal, or nowhere."""
