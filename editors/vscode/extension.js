// The language server `weft lsp`, for VS Code, and a key that plays a text without saving it by `weft send`.
'use strict';

const { spawn } = require('child_process');
const path = require('path');
const { commands, ViewColumn, window, workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

const settings = () => workspace.getConfiguration('weft');

async function start() {
  const options = settings().get('allow').flatMap((each) => ['--allow', each]);
  client = new LanguageClient(
    'weft', 'weft', { command: settings().get('command'), args: ['lsp', ...options] },
    { documentSelector: [{ language: 'weft' }] },
  );
  try {
    await client.start();
  } catch (failure) {
    const reason = (failure && failure.message) || failure;
    window.showErrorMessage(`The setting weft.command says where weft is. ${reason}`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running && running.needsStop()) {
    await running.stop().catch(() => {});
  }
}

const EVALUATE = 'weft.evaluate';

// Whether the server can have a performance play what is in the editor.
function evaluates() {
  const can = client && client.isRunning() && client.initializeResult.capabilities.executeCommandProvider;
  return Boolean(can && can.commands.includes(EVALUATE));
}

// Has a performance play the text of the editor: by the server, if it does that, and else by `weft send`.
async function send() {
  const editor = window.activeTextEditor;
  if (!editor || editor.document.languageId !== 'weft') {
    return undefined;
  }
  if (evaluates()) {
    const uri = client.code2ProtocolConverter.asUri(editor.document.uri);
    const found = await client.sendRequest('workspace/executeCommand', { command: EVALUATE, arguments: [uri] });
    if (found && found.ok) {
      window.setStatusBarMessage('weft: plays it', 5000);
    }
    return found; // of anything else, the server says why
  }
  const file = editor.document.uri.fsPath;
  const sending = spawn(settings().get('command'), ['send', '-', '--as', file], { cwd: path.dirname(file) });
  let said = '';
  sending.stdout.on('data', (part) => { said += part; });
  sending.stderr.on('data', (part) => { said += part; });
  sending.stdin.on('error', () => {}); // it ended before it had read all
  sending.stdin.end(editor.document.getText());
  return new Promise((done) => {
    sending.on('error', (failure) => { said = failure.message; });
    sending.on('close', (code) => {
      const line = said.trim().split('\n')[0];
      if (code === 0) {
        window.setStatusBarMessage(`weft: ${line || 'playing'}`, 5000);
      } else {
        window.showErrorMessage(`weft: ${line}`);
      }
      done(code);
    });
  });
}

// Says why the pixel in the middle of the picture, or the one that is asked for, has its colour: beside the text.
async function why() {
  const editor = window.activeTextEditor;
  if (!editor || editor.document.languageId !== 'weft' || !client || !client.isRunning()) {
    return undefined;
  }
  const typed = await window.showInputBox({
    title: 'Why this pixel?', value: 'x=0.5, y=0.5, time=0', prompt: 'x and y from 0 to 1, and the time in seconds',
  });
  if (typed === undefined) {
    return undefined;
  }
  const place = {};
  for (const [, name, value] of typed.matchAll(/(\w+)\s*=\s*([^,\s]+)/g)) {
    place[name] = name === 'name' ? value : Number(value);
  }
  const uri = client.code2ProtocolConverter.asUri(editor.document.uri);
  try {
    const command = { command: 'weft.why', arguments: [uri, place] };
    const found = await client.sendRequest('workspace/executeCommand', command);
    const document = await workspace.openTextDocument({ content: found ? found.text : 'nothing was found' });
    await window.showTextDocument(document, { viewColumn: ViewColumn.Beside, preserveFocus: true, preview: true });
    return found;
  } catch (failure) {
    window.showErrorMessage(`weft: ${failure.message}`);
    return undefined;
  }
}

async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand('weft.send', send),
    commands.registerCommand('weft.explain', why),
    commands.registerCommand('weft.restart', async () => { await stop(); await start(); }),
    workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration('weft')) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
