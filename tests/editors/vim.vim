" What a performer does with a patch in Vim; the answers are JSON in $ANSWERS.
let g:answers = {'failure': ''}

function! s:wait(what) abort
  for l:count in range(1800)
    if eval(a:what)
      return 1
    endif
    sleep 50m
  endfor
  throw 'waited for ' . a:what
endfunction

function! s:put(lines) abort
  silent %delete _
  call setline(1, a:lines)
endfunction

function! s:opened() abort
  let g:answers.filetype = &filetype
  let g:answers.comment = &commentstring
endfunction

function! s:listed() abort
  silent make!
  let g:answers.listed = map(filter(getqflist(), 'v:val.valid'), '[v:val.lnum, v:val.col, v:val.text]')
endfunction

function! s:formatted() abort
  call s:put(['a=sin( me@x )', 'display(a,a,a)'])
  silent normal! gggqG
  let g:answers.formatted = getline(1, '$')
endfunction

function! s:indented() abort
  call s:put(['spindle s(x) :: v {', 'for i in (1 to 3) {', 'v += sin(', 'x * i', ')', '}', '}', 'a =', 'if b then c else',
        \ 'd', 'display(a)'])
  silent normal! gg=G
  let g:answers.indented = getline(1, '$')
endfunction

function! s:reindented() abort
  let l:lines = readfile('all.txt')
  call s:put(l:lines)
  silent normal! gg=G
  let g:answers.lines = len(l:lines)
  let g:answers.same = 0
  for l:number in range(len(l:lines))
    let g:answers.same += l:lines[l:number] ==# getline(l:number + 1)
  endfor
endfunction

function! s:coloured() abort
  call s:put(['#fade 1', 'spindle disc(x) :: v { v = sin(x) }', '// a comment', 'a<r> = disc(me@x) // 2 "no"',
        \ 'display("s // s", pi)', 'b = a@r / 2'])
  let g:answers.colours = {}
  for l:word in ['#fade', 'spindle', 'disc', 'sin', 'a comment', 's // s', 'display', 'pi)', 'r /']
    let [l:line, l:column] = searchpos('\V' . l:word, 'cnw')
    let l:at = l:word ==# '#fade' ? 2 : 0
    let g:answers.colours[l:word] = synIDattr(synID(l:line, l:column + l:at, 1), 'name')
  endfor
endfunction

" --- with ALE ---

function! s:shown() abort
  return map(copy(ale#engine#GetLoclist(bufnr(''))), '[v:val.lnum, v:val.col, v:val.text]')
endfunction

function! s:served() abort
  packadd ale
  edit!
  ALELint
  call s:wait('len(ale#engine#GetLoclist(bufnr(""))) == 2')
  let g:answers.served = s:shown()
endfunction

function! s:huge() abort
  call s:put(repeat(['// ' . repeat('x', 96)], 2600))
  ALELint
  call s:wait('len(ale#engine#GetLoclist(bufnr(""))) == 1')
  let g:answers.huge = s:shown()[0][2]
endfunction

function! s:killed() abort
  for l:job in job_info()
    if job_info(l:job).cmd[-1] =~# 'weft'
      call job_stop(l:job, 'kill')
    endif
  endfor
  call s:put(['// typed after it'])
  ALELint
  silent write
  let g:answers.killed = readfile(expand('%'))
endfunction

for s:step in split($STEPS)
  try
    call call('s:' . s:step, [])
  catch
    let g:answers.failure = s:step . ': ' . v:exception . ' at ' . v:throwpoint
    break
  endtry
endfor
call writefile([json_encode(g:answers)], $ANSWERS)
qall!
