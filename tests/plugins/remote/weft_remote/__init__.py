"""A package that has pictures computed on another machine: `python -m weft_remote.server` there, and
`WEFT_REMOTE=http://HOST:PORT weft run PATCH --backend visual=remote` here."""
