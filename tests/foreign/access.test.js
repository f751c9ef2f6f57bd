// Tokens that another program makes, with keys of every kind, from files and from a key set behind an address that changes;
// and an access file that is read again.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { createHmac, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { EventSource } from "eventsource";
import { BINARY, Server, makeIdentity, until } from "./harness.js";
import { Socket, WebSocket } from "./socket.js";

const run = promisify(execFile);

const RULES = `
[[rule]]
who = "identified"
channels = ["user:{sub}"]
may = ["subscribe", "publish", "history"]
`;

/** Keys of each kind, and how they sign. */
const KINDS = {
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: () => generateKeyPairSync("ed25519"),
};

const base64url = (part) => Buffer.from(part).toString("base64url");

function token(algorithm, key, claims, id) {
  const head = { alg: algorithm, typ: "JWT", kid: id };
  const all = { sub: "ada", exp: Math.floor(Date.now() / 1000) + 600, ...claims };
  const message = `${base64url(JSON.stringify(head))}.${base64url(JSON.stringify(all))}`;
  const how = algorithm === "ES256" ? { key, dsaEncoding: "ieee-p1363" } : key;
  const signature =
    algorithm === "HS256"
      ? createHmac("sha256", key).update(message).digest()
      : sign(algorithm === "EdDSA" ? null : "sha256", Buffer.from(message), how);
  return `${message}.${signature.toString("base64url")}`;
}

function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "pushlab-access-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const poll = async (server, bearer, channel = "user:ada") => {
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  return (await server.request("GET", `/poll?channel=${channel}`, { headers })).status;
};

for (const [algorithm, make] of Object.entries(KINDS)) {
  test(`a token signed by ${algorithm} is checked by a public key in a file`, async (t) => {
    const path = folder(t);
    const [own, other] = [make(), make()];
    writeFileSync(join(path, "key.pem"), own.publicKey.export({ type: "spki", format: "pem" }));
    const file = join(path, "access.toml");
    writeFileSync(file, `[token]\n[[token.key]]\nalgorithm = "${algorithm}"\nfile = "key.pem"\n${RULES}`);
    const server = await Server.start(t, ["--access", file]);
    assert.equal(await poll(server, token(algorithm, own.privateKey)), 200);
    assert.equal(await poll(server, token(algorithm, other.privateKey)), 401, "another's key");
    assert.equal(await poll(server, token(algorithm, own.privateKey, { exp: 1 })), 401, "expired");
    assert.equal(await poll(server, token(algorithm, own.privateKey, { sub: "bob" })), 403, "another's channel");
    const secret = readFileSync(join(path, "key.pem"));
    assert.equal(await poll(server, token("HS256", secret)), 401, "the public key as a secret");
    assert.equal(await poll(server), 401);
  });
}

test("browsers' ways to send a token work in others' clients", async (t) => {
  const path = folder(t);
  const secret = randomBytes(32).toString("hex");
  writeFileSync(join(path, "secret"), `${secret}\n`);
  const file = join(path, "access.toml");
  writeFileSync(file, `[token]\n[[token.key]]\nalgorithm = "HS256"\nfile = "secret"\n${RULES}`);
  const server = await Server.start(t, ["--access", file]);
  const ada = token("HS256", secret);
  const ws = new WebSocket(`${server.base.replace("http", "ws")}/ws?channel=user:ada`, ["pushlab", `pushlab.token.${ada}`]);
  t.after(() => ws.terminate());
  const frames = [];
  ws.on("message", (data) => frames.push(JSON.parse(String(data))));
  await once(ws, "open");
  assert.equal(ws.protocol, "pushlab");
  const asked = await server.request("POST", "/ticket", { headers: { authorization: `Bearer ${ada}` } });
  const { ticket } = JSON.parse(asked.text);
  const source = new EventSource(`${server.base}/sse?channel=user:ada&ticket=${ticket}`);
  t.after(() => source.close());
  const events = [];
  source.onmessage = ({ data }) => events.push(JSON.parse(data));
  await once(source, "open");
  const headers = { authorization: `Bearer ${ada}`, "content-type": "application/json" };
  const sent = await server.request("POST", "/publish?channel=user:ada", { headers, body: '"hello"' });
  assert.equal(sent.status, 200);
  await until(() => frames.some(([name]) => name === "msg") && events.length > 0, "both get it");
  assert.deepEqual(events, [["msg", "user:ada", "hello"]]);
  const lost = new WebSocket(`${server.base.replace("http", "ws")}/ws?channel=user:ada`, ["pushlab", "pushlab.token.nonsense"]);
  const [error] = await once(lost, "error");
  assert.match(error.message, /401/);
  assert.ok(!server.log.includes(ada), "no token is logged");
});

test("a key set behind an address changes its keys", async (t) => {
  const path = folder(t);
  // What signs itself as an authority is no server's certificate to everybody.
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-addext", "basicConstraints=critical,CA:FALSE"];
  const identity = makeIdentity(t, kind);
  const [first, second] = [KINDS.ES256(), KINDS.RS256()];
  const entry = ({ publicKey }, kid) => ({ ...publicKey.export({ format: "jwk" }), kid, use: "sig" });
  let keys = [entry(first, "one")];
  let asked = 0;
  const issuer = https.createServer(
    { cert: readFileSync(identity.certificate), key: readFileSync(identity.key) },
    (_, response) => {
      asked += 1;
      response.end(JSON.stringify({ keys }));
    },
  );
  issuer.listen(0, "127.0.0.1");
  await once(issuer, "listening");
  t.after(() => issuer.close());
  const file = join(path, "access.toml");
  writeFileSync(file, `[token]\nkey_set = "https://127.0.0.1:${issuer.address().port}/keys"\n${RULES}`);
  const before = process.env.SSL_CERT_FILE;
  process.env.SSL_CERT_FILE = identity.certificate;
  t.after(() => {
    if (before === undefined) delete process.env.SSL_CERT_FILE;
    else process.env.SSL_CERT_FILE = before;
  });
  const server = await Server.start(t, ["--access", file]);
  await until(async () => (await poll(server, token("ES256", first.privateKey, {}, "one"))) === 200, () => `the keys have come; ${server.log}`);
  const { stdout } = await run(BINARY, ["access", "check", file]);
  assert.match(stdout, /has usable keys/);
  keys = [entry(second, "two")];
  await until(
    async () => (await poll(server, token("RS256", second.privateKey, {}, "two"))) === 200,
    () => `the new key is asked for; the issuer was asked ${asked} times; ${server.log}`,
    30_000,
  );
  const old = token("ES256", first.privateKey, { exp: Math.floor(Date.now() / 1000) + 601 }, "one");
  assert.equal(await poll(server, old), 401, "the old key is gone");
  for (let n = 0; n < 50; n += 1) await poll(server, token("RS256", second.privateKey, {}, `unknown-${n}`));
  assert.ok(asked <= 5, `whoever names unknown keys does not have the issuer asked each time: ${asked}`);
});

test("SIGHUP has the access file read again, and a broken one changes nothing", async (t) => {
  const path = folder(t);
  const secret = randomBytes(32).toString("hex");
  writeFileSync(join(path, "secret"), secret);
  const file = join(path, "access.toml");
  const keys = '[token]\n[[token.key]]\nalgorithm = "HS256"\nfile = "secret"\n';
  writeFileSync(file, `${keys}${RULES}`);
  const server = await Server.start(t, ["--access", file]);
  const ada = token("HS256", secret);
  const held = await Socket.open(t, server, "channel=user:ada", { headers: { authorization: `Bearer ${ada}` } });
  await held.frame("cursor");
  assert.equal(await poll(server, ada, "club"), 403);
  writeFileSync(file, `${keys}${RULES.replace('"user:{sub}"', '"user:{sub}", "club"')}`);
  server.signal("SIGHUP");
  await until(async () => (await poll(server, ada, "club")) === 200, () => `the new rules are in force; ${server.log}`);
  writeFileSync(file, `${keys}[[rule]]\nwho = "friends"\n`);
  server.signal("SIGHUP");
  await until(() => /the old rules stay: .*send SIGHUP again/s.test(server.log), () => server.log);
  assert.equal(await poll(server, ada, "club"), 200);
  assert.equal(held.closed, null, "who is connected stays");
});

test("a wrong access file keeps the server from starting, and says why", async (t) => {
  const path = folder(t);
  const file = join(path, "access.toml");
  for (const [text, why] of [
    ['[token]\nkey_set = "http://id.example/keys"\n', /https:\/\//],
    ['[token]\n[[token.key]]\nalgorithm = "HS256"\nfile = "nothing"\n', /nothing, which cannot be read/],
    ['[[rule]]\nwho = "everybody"\nchannels = ["a b"]\nmay = ["publish"]\n', /no pattern/],
  ]) {
    writeFileSync(file, text);
    for (const command of [["access", "check", file], ["serve", "--listen", "127.0.0.1:0", "--access", file]]) {
      assert.throws(() => execFileSync(BINARY, command, { stdio: "pipe", timeout: 20_000 }), (error) => {
        assert.match(String(error.stderr), why);
        return error.status === 1;
      });
    }
  }
});
