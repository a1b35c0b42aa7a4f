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

let b:undo_ftplugin = 'setlocal comments< commentstring< formatoptions< expandtab< shiftwidth< softtabstop< matchpairs<'
      \ . ' formatprg< makeprg< errorformat<'
