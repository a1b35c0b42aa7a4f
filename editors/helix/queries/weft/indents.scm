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
] @indent

[
  "}"
  ")"
] @outdent
