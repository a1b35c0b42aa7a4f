"""The parity harness: generated programs, and the rule by which a machine's pictures are held against the reference.

`recipes` says which operands each row is worth trying with, `author` writes programs of `pieces`, `cases` gets one
ready to be compared, `moved` is a reference whose numbers move in their last place, `rule` compares and explains,
`shrink` makes a failure small.
"""
