; Two spaces more in a block, in brackets, and where a statement goes on: what `weft fmt` writes.
[
  (block)
  (arguments)
  (parameters)
  (group)
  (tuple)
  (mapping)
  (bundle)
  (binding)
  (setting)
] @indent.begin

[
  "}"
  ")"
] @indent.branch

[
  (comment)
  (doc_comment)
] @indent.auto
