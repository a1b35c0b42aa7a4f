"""What editors know of the language: a server that speaks the Language Server Protocol over stdin and stdout.

In come texts as they are typed, and questions about places in them; out go diagnostics and answers. The server itself
analyses nothing. It asks processes of its own, which may fail or hang without harm to the editor. Begin with
`weft.editor.protocol.EditorServer`, then `weft.editor.answers.Answers`, which answers.
"""

ANALYST = "weft.editor.answers:main"
"""What a process that analyses texts runs, as `module:function`."""
