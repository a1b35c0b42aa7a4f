"""From the text of a patch to its tree, with all the mistakes that show in the text alone.

In comes a `Source`, a text with its name. Out go the statements of a `Program` (`weft.syntax.ast`), and diagnostics in
a `Report`. A broken statement is left out, and the others remain. Nothing here knows what a name means.

Begin with `weft.syntax.parser.parse`: it scans the text, matches the tokens with the grammar, and has
`weft.syntax.statements` make statements of the matches. Messages about a text that does not match are in
`weft.syntax.diagnose`. `weft.syntax.edits` keeps the statements that an edit does not change.
"""
