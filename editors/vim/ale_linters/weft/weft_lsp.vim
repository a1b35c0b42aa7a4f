" The language server, for ALE. Neovim starts it by itself.
if has('nvim-0.10')
  finish
endif

function! s:root(buffer) abort
  let l:git = ale#path#FindNearestDirectory(a:buffer, '.git')
  return empty(l:git) ? fnamemodify(bufname(a:buffer), ':p:h') : fnamemodify(l:git, ':h:h')
endfunction

call ale#linter#Define('weft', {
\   'name': 'weft_lsp',
\   'lsp': 'stdio',
\   'executable': 'weft',
\   'command': '%e lsp',
\   'project_root': function('s:root'),
\})
