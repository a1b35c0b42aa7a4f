(spindle
  body: (_) @function.inside) @function.around

(parameter) @parameter.inside

(argument) @parameter.inside

[
  (comment)
  (doc_comment)
] @comment.inside
