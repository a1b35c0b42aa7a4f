-- What Neovim does beyond Vim: the language server, what it shows within lines, its commands, and the grammar for
-- tree-sitter where that is installed.
if vim.g.loaded_weft then
  return
end
vim.g.loaded_weft = true

local group = vim.api.nvim_create_augroup("weft", {})

local function begin(event)
  local root = vim.fs.dirname(vim.fs.find(".git", { path = vim.fs.dirname(event.file), upward = true })[1])
  vim.lsp.start({ name = "weft", cmd = { "weft", "lsp" }, root_dir = root or vim.fs.dirname(event.file) })
end

-- Inlay hints and code lenses, if the server has them, and a command for each that it offers: `weft.evaluate` is
-- :WeftEvaluate.
local function attach(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  if client == nil or client.name ~= "weft" then
    return
  end
  local can = client.server_capabilities
  if can.inlayHintProvider and vim.lsp.inlay_hint then
    vim.lsp.inlay_hint.enable(true, { bufnr = event.buf })
  end
  if can.codeLensProvider then
    vim.api.nvim_create_autocmd({ "BufEnter", "TextChanged", "InsertLeave" }, {
      group = group,
      buffer = event.buf,
      callback = function()
        vim.lsp.codelens.refresh({ bufnr = event.buf })
      end,
    })
  end
  for _, command in ipairs((can.executeCommandProvider or {}).commands or {}) do
    local name = "Weft" .. command:gsub("^weft[./]", ""):gsub("^%l", string.upper):gsub("%W", "")
    vim.api.nvim_buf_create_user_command(event.buf, name, function()
      local arguments = { vim.uri_from_bufnr(event.buf) }
      client.request("workspace/executeCommand", { command = command, arguments = arguments }, nil, event.buf)
    end, { desc = "weft: " .. command, force = true })
  end
end

vim.api.nvim_create_autocmd("LspAttach", { group = group, callback = attach })

vim.api.nvim_create_autocmd("FileType", {
  group = group,
  pattern = "weft",
  callback = function(event)
    pcall(vim.treesitter.start, event.buf, "weft")
    if not vim.lsp.enable and vim.lsp.start and vim.fn.executable("weft") == 1 then
      begin(event)
    end
  end,
})

if vim.lsp.enable then
  vim.lsp.enable("weft")
end
