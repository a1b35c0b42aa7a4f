" :make lists the mistakes of a patch.
if exists('current_compiler')
  finish
endif
let current_compiler = 'weft'

CompilerSet makeprg=weft\ check\ %:S
CompilerSet errorformat=%E%f:%l:%c:\ error:\ %m,%W%f:%l:%c:\ warning:\ %m,%-G%.%#
