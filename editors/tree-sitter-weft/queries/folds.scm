; What folds: blocks, and statements and pragmas of several lines.
[
  (spindle)
  (loop)
  (binding)
  (call_statement)
  (comment)
] @fold
