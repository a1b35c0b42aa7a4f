// What VS Code does with the package, by the libraries that it is made of: `colours FILE` writes the scopes of each
// token as JSON, and `client FOLDER` starts the server as the extension does, with the protocol of its client.
'use strict';

const fs = require('fs');
const path = require('path');
const { spawn } = require('child_process');
const { pathToFileURL } = require('url');

const FOLDER = path.join(__dirname, '../../editors/vscode');
const from = (name) => require(require.resolve(name, { paths: [FOLDER] }));

async function colours(file) {
  const oniguruma = from('vscode-oniguruma');
  const { Registry, parseRawGrammar, INITIAL } = from('vscode-textmate');
  const wasm = require.resolve('vscode-oniguruma/release/onig.wasm', { paths: [FOLDER] });
  await oniguruma.loadWASM(fs.readFileSync(wasm).buffer);
  const manifest = JSON.parse(fs.readFileSync(path.join(FOLDER, 'package.json'), 'utf8'));
  const [{ path: place, scopeName }] = manifest.contributes.grammars;
  const grammarFile = path.join(FOLDER, place);
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => parseRawGrammar(fs.readFileSync(grammarFile, 'utf8'), grammarFile),
  });
  const grammar = await registry.loadGrammar(scopeName);
  const found = [];
  let state = INITIAL;
  for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
    found.push(tokens.map((each) => [line.slice(each.startIndex, each.endIndex), each.scopes[each.scopes.length - 1]]));
    state = ruleStack;
  }
  return found;
}

async function client(folder) {
  const protocol = from('vscode-languageserver-protocol/node');
  const server = spawn('weft', ['lsp'], { cwd: folder });
  const connection = protocol.createProtocolConnection(
    new protocol.StreamMessageReader(server.stdout), new protocol.StreamMessageWriter(server.stdin),
  );
  const uri = pathToFileURL(path.join(folder, 'a.weft')).href;
  const published = new Promise((done) => {
    connection.onNotification(protocol.PublishDiagnosticsNotification.type, (each) => each.diagnostics.length && done(each));
  });
  connection.onRequest(protocol.RegistrationRequest.type, () => null);
  connection.listen();
  const { capabilities } = await connection.sendRequest(protocol.InitializeRequest.type, {
    processId: process.pid, rootUri: pathToFileURL(folder).href,
    capabilities: { textDocument: { publishDiagnostics: {}, completion: {} } },
  });
  await connection.sendNotification(protocol.InitializedNotification.type, {});
  const text = fs.readFileSync(path.join(folder, 'a.weft'), 'utf8');
  const textDocument = { uri, languageId: 'weft', version: 1, text };
  await connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, { textDocument });
  const { diagnostics } = await published;
  await connection.sendRequest(protocol.ShutdownRequest.type);
  await connection.sendNotification(protocol.ExitNotification.type);
  await new Promise((done) => { server.on('close', done); });
  return {
    commands: (capabilities.executeCommandProvider || { commands: [] }).commands,
    diagnostics: diagnostics.map((each) => [each.code, each.range.start.line, each.range.start.character]),
  };
}

const [what, argument] = process.argv.slice(2);
({ colours, client })[what](argument).then(
  (found) => { fs.writeFileSync(process.env.ANSWERS, JSON.stringify(found)); process.exit(0); },
  (failure) => { console.error(failure); process.exit(1); },
);
