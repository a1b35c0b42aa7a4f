; Where names are defined, and where they are known.
[
  (source_file)
  (spindle)
  (loop)
] @local.scope

(spindle
  name: (identifier) @local.definition.function)

(parameter
  name: (identifier) @local.definition.parameter)

(loop
  variable: (identifier) @local.definition.var)

(binding
  name: (identifier) @local.definition.var)

(bound
  name: (identifier) @local.definition.var)

(pragma
  name: (identifier) @local.definition.var)

(identifier) @local.reference
