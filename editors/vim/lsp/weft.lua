-- The language server, for Neovim from 0.11 on.
return { cmd = { "weft", "lsp" }, filetypes = { "weft" }, root_markers = { ".git" } }
