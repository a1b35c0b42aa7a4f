"""What measurements of weft beside other tools have in common: processes that take turns, and how they are told of."""
