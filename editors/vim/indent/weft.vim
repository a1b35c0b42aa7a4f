" Two spaces more after a line that opens a block or brackets, and where a statement goes on.
if exists('b:did_indent')
  finish
endif
let b:did_indent = 1

setlocal indentexpr=WeftIndent(v:lnum) indentkeys=0{,0},0),0],!^F,o,O
let b:undo_indent = 'setlocal indentexpr< indentkeys<'

if exists('*WeftIndent')
  finish
endif

" A line without its strings and comments.
function! s:bare(number) abort
  let l:line = substitute(getline(a:number), '"\%([^"\\]\|\\.\)*"', '""', 'g')
  return substitute(l:line, '\s*//.*$', '', '')
endfunction

" Whether the line after this one continues its statement.
function! s:goes_on(line) abort
  return a:line =~# '\%([-+*/%^=,~]\|<<\||>\|\<\%(and\|or\|not\|then\|else\)\)\s*$'
endfunction

function! WeftIndent(number) abort
  let l:before = prevnonblank(a:number - 1)
  if l:before == 0
    return 0
  endif
  let l:line = s:bare(l:before)
  let l:opened = len(substitute(l:line, '[^({[]', '', 'g')) - len(substitute(l:line, '[^)}\]]', '', 'g'))
  let l:indent = indent(l:before)
  if l:opened > 0
    let l:indent += shiftwidth()
  elseif l:line =~# '^\s*[)}\]]'
    " It has stepped back by itself.
    let l:opened = 0
  elseif l:opened < 0
    let l:indent -= shiftwidth()
  endif
  if l:opened == 0 && s:goes_on(l:line) && !s:goes_on(s:bare(prevnonblank(l:before - 1)))
    let l:indent += shiftwidth()
  elseif l:opened == 0 && !s:goes_on(l:line) && s:goes_on(s:bare(prevnonblank(l:before - 1)))
    let l:indent -= shiftwidth()
  endif
  if getline(a:number) =~# '^\s*[)}\]]'
    let l:indent -= shiftwidth()
  endif
  return max([l:indent, 0])
endfunction
