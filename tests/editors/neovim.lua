-- What a performer does with a patch in Neovim; the answers are JSON in $ANSWERS.
local answers = {}

local function wait(what)
  return vim.wait(60000, what, 20)
end

local function client()
  return vim.lsp.get_clients({ bufnr = 0, name = "weft" })[1]
end

-- All is said about the text as it is.
local function settled()
  client().request_sync("weft/settled", vim.NIL, 60000, vim.api.nvim_get_current_buf())
  local handled = false
  vim.schedule(function()
    handled = true
  end)
  wait(function()
    return handled
  end)
end

local function found()
  local listed = {}
  for _, each in ipairs(vim.diagnostic.get(0)) do
    table.insert(listed, { each.code, each.lnum, each.col })
  end
  return listed
end

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
end

local steps = {
  opened = function()
    answers.attached = wait(client)
    answers.filetype = vim.bo.filetype
    -- What is found at once, without what takes longer.
    wait(function()
      return #vim.diagnostic.get(0) == 2
    end)
    answers.mistakes = found()
  end,
  completed = function()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { "a = sin(me@x)", "display(a, a, me@)" })
    vim.api.nvim_win_set_cursor(0, { 2, 17 })
    local place = vim.lsp.util.make_position_params(0, client().offset_encoding)
    local buffer = vim.api.nvim_get_current_buf()
    local labels = {}
    for _, each in ipairs(client().request_sync("textDocument/completion", place, 60000, buffer).result.items) do
      table.insert(labels, each.label)
    end
    answers.omnifunc, answers.completions = vim.bo.omnifunc, labels
  end,
  formatted = function()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { "a=sin( me@x )", "display(a,a,a)" })
    vim.lsp.buf.format({ timeout_ms = 60000 })
    answers.formatted = text()
  end,
  renamed = function()
    vim.api.nvim_win_set_cursor(0, { 1, 0 })
    vim.lsp.buf.rename("wave")
    wait(function()
      return text():find("wave") ~= nil
    end)
    answers.renamed = text()
  end,
  coloured = function()
    local ok, parser = pcall(vim.treesitter.get_parser, 0, "weft")
    answers.parser = ok and parser ~= nil
    if answers.parser then
      parser:parse()
      local captures = {}
      for _, each in ipairs(vim.treesitter.get_captures_at_pos(0, 1, 0)) do
        table.insert(captures, each.capture)
      end
      answers.captures = captures
    end
    answers.syntax = vim.fn.synIDattr(vim.fn.synID(2, 1, 1), "name")
  end,
  folded = function()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { "a = 1", "spindle s(x) :: v {", "  v = x", "}", "display(a)" })
    vim.wo.foldmethod, vim.wo.foldexpr = "expr", "v:lua.vim.treesitter.foldexpr()"
    wait(function()
      return vim.fn.foldlevel(3) == 1
    end)
    answers.folds = { vim.fn.foldlevel(1), vim.fn.foldlevel(3), vim.fn.foldlevel(5) }
  end,
  valued = function()
    wait(client)
    local hints = {}
    wait(function()
      hints = vim.lsp.inlay_hint.get({ bufnr = 0 })
      return #hints > 0
    end)
    answers.hints = vim.tbl_map(function(each)
      return { each.inlay_hint.position.line, each.inlay_hint.label }
    end, hints)
    vim.cmd("%s/0.25/0.75/")
    vim.cmd("WeftSend")
    wait(function()
      return vim.fn.execute("messages"):find("weft: plays it") ~= nil
    end)
    answers.modified = vim.bo.modified
  end,
  huge = function()
    local line = "// " .. string.rep("x", 96)
    local lines = {}
    for _ = 1, 2600 do
      table.insert(lines, line)
    end
    vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
    settled()
    answers.huge = found()
  end,
  killed = function()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { "display(me@x)" })
    settled()
    -- The server is the only child of this process.
    local task = "/proc/" .. vim.fn.getpid() .. "/task/" .. vim.fn.getpid() .. "/children"
    vim.uv.kill(tonumber(vim.fn.readfile(task)[1]:match("%d+")), "sigkill")
    wait(function()
      return client() == nil
    end)
    vim.api.nvim_buf_set_lines(0, -1, -1, false, { "// typed after it" })
    vim.cmd("write")
    answers.killed = vim.fn.readfile(vim.fn.expand("%"))
    vim.cmd("edit!")
    answers.again = wait(client)
  end,
}

for _, name in ipairs(vim.split(vim.env.STEPS, " ")) do
  local ok, failure = pcall(steps[name])
  if not ok then
    answers.failure = name .. ": " .. tostring(failure)
    break
  end
end
vim.fn.writefile({ vim.json.encode(answers) }, vim.env.ANSWERS)
vim.cmd("qall!")
