// The language server `weft lsp`, for VS Code, and a key that plays a text without saving it by `weft send`.
'use strict';

const { spawn } = require('child_process');
const path = require('path');
const { commands, window, workspace } = require('vscode');
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
    window.showErrorMessage(`weft does not start: ${failure.message}. The setting weft.command says where it is.`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running && running.needsStop()) {
    await running.stop().catch(() => {});
  }
}

// Has the performance of the file play the text of the editor.
function send() {
  const editor = window.activeTextEditor;
  if (!editor || editor.document.languageId !== 'weft') {
    return undefined;
  }
  const file = editor.document.uri.fsPath;
  const sending = spawn(settings().get('command'), ['send', '-'], { cwd: path.dirname(file) });
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

async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand('weft.send', send),
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
