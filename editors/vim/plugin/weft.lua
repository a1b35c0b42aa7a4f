-- What Neovim does beyond Vim: the language server, what it shows within lines, its commands, and the grammar for
-- tree-sitter where that is installed.
if vim.g.loaded_weft or vim.fn.has("nvim-0.10") == 0 then
  return
end
vim.g.loaded_weft = true

local EVALUATE = "weft.evaluate"
local group = vim.api.nvim_create_augroup("weft", {})

local function begin(event)
  local root = vim.fs.dirname(vim.fs.find(".git", { path = vim.fs.dirname(event.file), upward = true })[1])
  vim.lsp.start({ name = "weft", cmd = { "weft", "lsp" }, root_dir = root or vim.fs.dirname(event.file) })
end

-- The text in the buffer is played without a save: by the server, if it does that, and else by `weft send`.
local function send(buffer)
  local arguments = { vim.uri_from_bufnr(buffer) }
  local request = { command = EVALUATE, arguments = arguments }
  vim.lsp.buf_request(buffer, "workspace/executeCommand", request, function(failure, found)
    -- Of anything else, the server says itself why.
    if failure == nil and found ~= nil and found.ok then
      vim.api.nvim_echo({ { "weft: plays it" } }, false, {})
    end
  end)
end

-- Inlay hints and code lenses, if the server has them, and its own way to play a text without a save.
local function attach(event)
  local client = vim.lsp.get_client_by_id(event.data.client_id)
  if client == nil or client.name ~= "weft" then
    return
  end
  local can = client.server_capabilities
  if can.inlayHintProvider then
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
  if vim.tbl_contains((can.executeCommandProvider or {}).commands or {}, EVALUATE) then
    vim.api.nvim_buf_create_user_command(event.buf, "WeftSend", function()
      send(event.buf)
    end, { desc = "weft: play the text without a save", force = true })
  end
end

vim.api.nvim_create_autocmd("LspAttach", { group = group, callback = attach })

vim.api.nvim_create_autocmd("FileType", {
  group = group,
  pattern = "weft",
  callback = function(event)
    pcall(vim.treesitter.start, event.buf, "weft")
    if not vim.lsp.enable and vim.fn.executable("weft") == 1 then
      begin(event)
    end
  end,
})

if vim.lsp.enable then
  vim.lsp.enable("weft")
end
