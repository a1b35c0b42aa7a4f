; Written by scripts/editor_words.py from editors/tree-sitter-weft/queries.

; comments
(comment) @comment

(doc_comment) @comment.block.documentation

; values
(number) @constant.numeric

(string) @string

(escape) @constant.character.escape

; signs
(operator) @operator

[
  "|>"
  "~"
  "::"
] @operator

[
  "("
  ")"
  "["
  "]"
  "{"
  "}"
] @punctuation.bracket

(bundle
  [
    "<"
    ">"
  ] @punctuation.bracket)

(outputs
  [
    "<"
    ">"
  ] @punctuation.bracket)

[
  ","
  ";"
  ":"
  "@"
  "."
] @punctuation.delimiter

; pragmas
(directive) @keyword.directive

(word) @keyword.directive

(library
  (identifier) @namespace)

; keywords
[
  "if"
  "then"
  "else"
] @keyword.control.conditional

[
  "for"
  "in"
  "to"
] @keyword.control.repeat

"spindle" @keyword.function

[
  "let"
  "out"
] @keyword

[
  "and"
  "or"
  "not"
] @keyword.operator

; what weft brings along
((call
  function: (identifier) @function.builtin)
; words: functions
  (#any-of? @function.builtin "abs" "acos" "asin" "atan" "atan2" "cache" "camera" "cbrt" "ceil" "clamp" "cos" "cosh"
    "count" "cross" "deg" "delay" "desktop" "distance" "dot" "exp" "exp2" "fbm" "fft" "floor" "fract" "hash" "held"
    "hold" "hypot" "image" "integrate" "join" "length" "lerp" "load" "log" "log10" "log2" "max" "mean" "mic" "midi_bend"
    "midi_cc" "midi_note" "midi_pressure" "midi_program" "min" "mix" "mod" "noise" "normalize" "onset" "osc" "pad"
    "pattern" "peak" "phasor" "pitch" "pow" "prev" "product" "rad" "reverse" "rises" "rms" "round" "saturate" "select"
    "seq" "sign" "simplex" "sin" "sinh" "smooth_seq" "smoothstep" "sqrt" "step" "sum" "tan" "tanh" "tempo" "text"
    "trunc" "unit" "voronoi" "window")
; words end
)

((call
  function: (identifier) @keyword)
; words: outputs
  (#any-of? @keyword "audio" "compute" "display" "haptic" "lights" "midi" "osc_send" "play" "render")
; words end
)

((identifier) @constant.builtin
; words: constants
  (#any-of? @constant.builtin "e" "pi" "tau")
; words end
)

((identifier) @variable.builtin
; words: reserved
  (#any-of? @variable.builtin "key" "me" "mouse")
; words end
)

"me" @variable.builtin

; calls
(call
  function: (identifier) @function)

(multicall
  name: (identifier) @function)

(spindle
  name: (identifier) @function)

; names
(identifier) @variable

(access
  output: (identifier) @variable.other.member)

(label
  (identifier) @variable.other.member)

(outputs
  (identifier) @variable.other.member)

(bound
  name: (identifier) @variable)

(setting
  name: (identifier) @variable.other.member)

(parameter
  name: (identifier) @variable.parameter)

; Colours. Of two patterns that match, the last one counts.

; names
(identifier) @variable

(access
  output: (identifier) @variable.other.member)

(label
  (identifier) @variable.other.member)

(outputs
  (identifier) @variable.other.member)

(bound
  name: (identifier) @variable)

(setting
  name: (identifier) @variable.other.member)

(parameter
  name: (identifier) @variable.parameter)

; calls
(call
  function: (identifier) @function)

(multicall
  name: (identifier) @function)

(spindle
  name: (identifier) @function)

; what weft brings along
((call
  function: (identifier) @function.builtin)
; words: functions
  (#any-of? @function.builtin "abs" "acos" "asin" "atan" "atan2" "cache" "camera" "cbrt" "ceil" "clamp" "cos" "cosh"
    "count" "cross" "deg" "delay" "desktop" "distance" "dot" "exp" "exp2" "fbm" "fft" "floor" "fract" "hash" "held"
    "hold" "hypot" "image" "integrate" "join" "length" "lerp" "load" "log" "log10" "log2" "max" "mean" "mic" "midi_bend"
    "midi_cc" "midi_note" "midi_pressure" "midi_program" "min" "mix" "mod" "noise" "normalize" "onset" "osc" "pad"
    "pattern" "peak" "phasor" "pitch" "pow" "prev" "product" "rad" "reverse" "rises" "rms" "round" "saturate" "select"
    "seq" "sign" "simplex" "sin" "sinh" "smooth_seq" "smoothstep" "sqrt" "step" "sum" "tan" "tanh" "tempo" "text"
    "trunc" "unit" "voronoi" "window")
; words end
)

((call
  function: (identifier) @keyword)
; words: outputs
  (#any-of? @keyword "audio" "compute" "display" "haptic" "lights" "midi" "osc_send" "play" "render")
; words end
)

((identifier) @constant.builtin
; words: constants
  (#any-of? @constant.builtin "e" "pi" "tau")
; words end
)

((identifier) @variable.builtin
; words: reserved
  (#any-of? @variable.builtin "key" "me" "mouse")
; words end
)

"me" @variable.builtin

; keywords
[
  "if"
  "then"
  "else"
] @keyword.control.conditional

[
  "for"
  "in"
  "to"
] @keyword.control.repeat

"spindle" @keyword.function

[
  "let"
  "out"
] @keyword

[
  "and"
  "or"
  "not"
] @keyword.operator

; pragmas
(directive) @keyword.directive

(word) @keyword.directive

(library
  (identifier) @namespace)

; signs
(operator) @operator

[
  "|>"
  "~"
  "::"
] @operator

[
  "("
  ")"
  "["
  "]"
  "{"
  "}"
] @punctuation.bracket

(bundle
  [
    "<"
    ">"
  ] @punctuation.bracket)

(outputs
  [
    "<"
    ">"
  ] @punctuation.bracket)

[
  ","
  ";"
  ":"
  "@"
  "."
] @punctuation.delimiter

; values
(number) @constant.numeric

(string) @string

(escape) @constant.character.escape

; comments
(comment) @comment

(doc_comment) @comment.block.documentation
