autocmd BufRead,BufNewFile *.weft setfiletype weft
