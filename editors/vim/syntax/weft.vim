" Colours of patches.
if exists('b:current_syntax')
  finish
endif

syntax case match
syntax iskeyword @,48-57,_

" words: choosing
syntax keyword weftChoosing else if then
" words end
" words: repeating
syntax keyword weftRepeating for in to
" words end
" words: defining
syntax keyword weftDefining let out spindle
" words end
" words: joining
syntax keyword weftJoining and not or
" words end
" words: reserved
syntax keyword weftReserved key me mouse
" words end
" words: outputs
syntax keyword weftOutputs audio compute display haptic lights midi osc_send play render
" words end
" words: functions
syntax keyword weftFunctions abs acos asin atan atan2 cache camera cbrt ceil clamp cos cosh count cross deg delay
syntax keyword weftFunctions desktop distance dot exp exp2 fbm fft floor fract hash held hold hypot image integrate join
syntax keyword weftFunctions length lerp load log log10 log2 max mean mic midi_bend midi_cc midi_note midi_pressure
syntax keyword weftFunctions midi_program min mix mod noise normalize onset osc pad pattern peak phasor pitch pow prev
syntax keyword weftFunctions product rad reverse rises rms round saturate select seq sign simplex sin sinh smooth_seq
syntax keyword weftFunctions smoothstep sqrt step sum tan tanh tempo text trunc unit voronoi window
" words end
" words: constants
syntax keyword weftConstants e pi tau
" words end
" words: pragmas
syntax keyword weftPragmas button color fade include menu quantize slider toggle use xy
" words end

syntax match weftSpindle /\%(\<spindle\s\+\)\@<=\h\w*/
syntax match weftMember /@\s*\zs\w\+/
syntax match weftLabel /\<\h\w*\ze\s*::\@!/
syntax match weftOperator /|>\|::\|[-+*/%^=<>!~]\+/
syntax match weftNumber /\%(\<\d\+\.\=\d*\|\.\d\+\)\%([eE][-+]\=\d\+\)\=\>\=/
syntax match weftDirective /^\s*#\h\w*/ contains=weftPragmas
syntax match weftEscape /\\["\\nt]/ contained
syntax region weftString start=/"/ skip=/\\./ end=/"/ oneline contains=weftEscape
syntax keyword weftTodo TODO FIXME contained
syntax match weftComment /\/\/.*$/ contains=weftTodo,@Spell
syntax match weftDoc /\/\/\/\/\@!.*$/ contains=@Spell
syntax region weftComment start=/\/\*/ end=/\*\// contains=weftTodo,@Spell

highlight default link weftChoosing Conditional
highlight default link weftRepeating Repeat
highlight default link weftDefining Keyword
highlight default link weftJoining Operator
highlight default link weftReserved Identifier
highlight default link weftOutputs Statement
highlight default link weftFunctions Function
highlight default link weftConstants Constant
highlight default link weftPragmas PreProc
highlight default link weftSpindle Function
highlight default link weftMember Type
highlight default link weftLabel Label
highlight default link weftOperator Operator
highlight default link weftNumber Number
highlight default link weftDirective Error
highlight default link weftEscape SpecialChar
highlight default link weftString String
highlight default link weftTodo Todo
highlight default link weftComment Comment
highlight default link weftDoc SpecialComment

let b:current_syntax = 'weft'
