"""The sound of a performance, made in a process of its own, which nothing in the player's can hold up."""
