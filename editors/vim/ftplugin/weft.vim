" How patches are edited: the style is that of `weft fmt`.
if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal comments=:///,://,sr:/*,mb:*,ex:*/ commentstring=//\ %s formatoptions-=t formatoptions+=croql
setlocal expandtab shiftwidth=2 softtabstop=2 matchpairs+=<:>
setlocal formatprg=weft\ fmt\ -
if executable('weft')
  compiler weft
endif

" The performance that runs plays the text as it is, without a save.
command! -buffer -bar WeftSend execute "write !weft send - --as " . shellescape(expand("%:p"), 1)

let b:undo_ftplugin = 'delcommand -buffer WeftSend | setlocal comments< commentstring< formatoptions< expandtab< shiftwidth< softtabstop< matchpairs<'
      \ . ' formatprg< makeprg< errorformat<'
