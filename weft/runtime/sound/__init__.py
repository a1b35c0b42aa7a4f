"""The sound of a performance, computed in a separate process, which nothing in the player's process can delay."""
