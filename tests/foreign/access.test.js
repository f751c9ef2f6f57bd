// Tokens that another program makes, with keys of every kind, from files and from a key set behind an address that changes;
// and an access file that is read again.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { createHmac, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { EventSource } from "eventsource";
import { example, put } from "./documents.js";
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

const entry = ({ publicKey }, kid) => ({ ...publicKey.export({ format: "jwk" }), kid, use: "sig" });

// What signs itself as an authority is no server's certificate to everybody.
const ISSUER = makeIdentity(
  { after },
  ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-addext", "basicConstraints=critical,CA:FALSE"],
);
process.env.SSL_CERT_FILE = ISSUER.certificate;

/** An issuer that answers what asks for its key set by `answer`, and whom the servers trust. Gives the set's address. */
async function startIssuer(t, answer) {
  const files = { cert: readFileSync(ISSUER.certificate), key: readFileSync(ISSUER.key) };
  const issuer = https.createServer(files, (_, response) => answer(response));
  issuer.listen(0, "127.0.0.1");
  await once(issuer, "listening");
  t.after(() => {
    issuer.close();
    issuer.closeAllConnections();
  });
  return `https://127.0.0.1:${issuer.address().port}/keys`;
}

test("a key set behind an address changes its keys", async (t) => {
  const [first, second] = [KINDS.ES256(), KINDS.RS256()];
  let keys = [entry(first, "one")];
  let asked = 0;
  const url = await startIssuer(t, (response) => {
    asked += 1;
    response.end(JSON.stringify({ keys }));
  });
  const file = join(folder(t), "access.toml");
  writeFileSync(file, `[token]\nkey_set = "${url}"\n${RULES}`);
  const server = await Server.start(t, ["--access", file]);
  await until(async () => (await poll(server, token("ES256", first.privateKey, {}, "one"))) === 200, () => `the keys have come; ${server.log}`);
  const { stdout } = await run(BINARY, ["access", "check", file]);
  assert.match(stdout, /tokens are checked by 1 key/);
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

test("the example of docs/access.md allows what it says", async (t) => {
  const path = folder(t);
  const pair = KINDS.ES256();
  const url = await startIssuer(t, (response) => response.end(JSON.stringify({ keys: [entry(pair, "k")] })));
  const key = randomBytes(32).toString("hex");
  writeFileSync(join(path, "back-end.key"), key, { mode: 0o600 });
  const file = join(path, "access.toml");
  writeFileSync(file, put(example("access.md"), [["https://id.example.org/.well-known/jwks.json", url]]));
  const server = await Server.start(t, ["--access", file]);
  const made = (claims) => token("ES256", pair.privateKey, { iss: "https://id.example.org", aud: "push", ...claims }, "k");
  const [ada, editor] = [made(), made({ sub: "eve", role: "editor" })];
  const ask = async (bearer, method, target) => {
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
    const body = method === "POST" ? "1" : undefined;
    return await server.request(method, target, { headers: { ...headers, "content-type": "application/json" }, body });
  };
  const hasKeys = async () => (await ask(ada, "GET", "/poll?channel=news:a")).status === 200;
  await until(hasKeys, () => `the keys have come; ${server.log}`);
  for (const [bearer, method, target, expected] of [
    [undefined, "GET", "/poll?channel=news:a", 200],
    [undefined, "POST", "/publish?channel=news:a", 403],
    [ada, "POST", "/publish?channel=news:a", 403],
    [editor, "POST", "/publish?channel=news:a", 200],
    [ada, "POST", "/publish?channel=user:ada:inbox", 200],
    [ada, "GET", "/api/history?channel=user:ada", 200],
    [ada, "GET", "/poll?channel=user:eve", 403],
    [made({ aud: "other" }), "GET", "/poll?channel=news:a", 401],
    [undefined, "GET", "/poll?channel=room:7", 403],
    [undefined, "GET", "/stats", 401],
    [key, "GET", "/stats", 200],
    [key, "POST", "/publish?channel=any", 200],
  ]) {
    assert.equal((await ask(bearer, method, target)).status, expected, `${method} ${target} with ${bearer}`);
  }
  const headers = { authorization: `Bearer ${ada}` };
  const open = () => Socket.open(t, server, "channel=room:7", { headers });
  const sockets = await Promise.all(Array.from({ length: 20 }, open));
  assert.equal((await ask(ada, "GET", "/sse?channel=room:7")).status, 429, "a connection more");
  await until(async () => {
    const { count, identities } = JSON.parse((await ask(ada, "GET", "/api/presence?channel=room:7")).text);
    return count === 1 && identities[0] === "ada";
  }, "ada is there, once");
  for (let n = 0; n < 1000; n += 1) sockets[0].send("pub", "room:7", n);
  await sockets[0].frame("error", "limit-reached");
});

test("keys that come after the access file names another issuer are discarded", async (t) => {
  const [old, current] = [KINDS.EdDSA(), KINDS.EdDSA()];
  const held = [];
  const late = await startIssuer(t, (response) => held.push(response));
  const url = await startIssuer(t, (response) => response.end(JSON.stringify({ keys: [entry(current, "k")] })));
  const file = join(folder(t), "access.toml");
  const write = (set) => writeFileSync(file, `[token]\nkey_set = "${set}"\n${RULES}`);
  const by = (pair) => token("EdDSA", pair.privateKey, {}, "k");
  write(late);
  const server = await Server.start(t, ["--access", file]);
  await until(() => held.length > 0, "the old issuer is asked");
  write(url);
  server.signal("SIGHUP");
  await until(async () => (await poll(server, by(current))) === 200, () => `the new issuer's keys are in force; ${server.log}`);
  held.forEach((response) => response.end(JSON.stringify({ keys: [entry(old, "k")] })));
  await until(
    async () => /its keys are discarded/.test(server.log) || (await poll(server, by(old))) === 200,
    () => `the late answer has come; ${server.log}`,
  );
  assert.equal(await poll(server, by(old)), 401, "a token of the old issuer");
  assert.equal(await poll(server, by(current)), 200, "a token of the new one");
});

test("a key set that is empty has no keys", async (t) => {
  const pair = KINDS.EdDSA();
  let keys = [entry(pair, "k")];
  const url = await startIssuer(t, (response) => response.end(JSON.stringify({ keys })));
  const path = folder(t);
  const file = join(path, "access.toml");
  const set = join(path, "set.json");
  const ada = token("EdDSA", pair.privateKey, {}, "k");
  for (const source of [url, "set.json"]) {
    const isGood = async (server) => (await poll(server, ada)) === 200;
    keys = [entry(pair, "k")];
    writeFileSync(set, JSON.stringify({ keys }));
    writeFileSync(file, `[token]\nkey_set = "${source}"\n${RULES}`);
    const server = await Server.start(t, ["--access", file]);
    await until(() => isGood(server), () => `the key has come; ${server.log}`);
    keys = [];
    writeFileSync(set, JSON.stringify({ keys }));
    server.signal("SIGHUP");
    await until(() => /was read again|the old rules stay/.test(server.log), () => server.log);
    assert.equal(await poll(server, ada), 401, server.log);
    assert.match(server.log, /no key that can check a token/);
  }
});

test("keys that cannot be fetched again count for their time", async (t) => {
  const pair = KINDS.EdDSA();
  let isAway = false;
  const url = await startIssuer(t, (response) => {
    if (isAway) response.writeHead(503).end();
    else response.end(JSON.stringify({ keys: [entry(pair, "k")] }));
  });
  const file = join(folder(t), "access.toml");
  writeFileSync(file, `[token]\nkey_set = "${url}"\nkey_set_max_age_s = 2\n${RULES}`);
  const server = await Server.start(t, ["--access", file]);
  const ada = token("EdDSA", pair.privateKey, {}, "k");
  await until(async () => (await poll(server, ada)) === 200, () => `the keys have come; ${server.log}`);
  isAway = true;
  await until(async () => (await poll(server, ada)) === 401, () => `the keys are too old; ${server.log}`);
  await until(() => /keys of the key set are too old/.test(server.log), () => server.log);
  isAway = false;
  await until(async () => (await poll(server, ada)) === 200, () => `they have come again; ${server.log}`);
});

test("refused tokens are counted and logged, with address and cause, once a second at most", async (t) => {
  const path = folder(t);
  const [secret, key] = [randomBytes(32).toString("hex"), randomBytes(32).toString("hex")];
  writeFileSync(join(path, "secret"), secret);
  writeFileSync(join(path, "key"), key);
  const file = join(path, "access.toml");
  const keys = '[token]\n[[token.key]]\nalgorithm = "HS256"\nfile = "secret"\n[back_end]\nkey_file = "key"\n';
  writeFileSync(file, `${keys}${RULES}`);
  const server = await Server.start(t, ["--access", file, "--trusted-proxy", "127.0.0.1"]);
  const forged = token("HS256", randomBytes(32).toString("hex"));
  const begun = performance.now();
  for (const target of ["/poll?channel=user:ada", "/api/history?channel=user:ada"]) {
    for (let n = 0; n < 100; n += 1) {
      const headers = { authorization: `Bearer ${forged}`, "x-forwarded-for": `198.51.100.${n}` };
      assert.equal((await server.request("GET", target, { headers })).status, 401);
    }
  }
  await until(() => / from 198\.51\.100\.99: the token's signature is wrong/.test(server.log), () => server.log);
  const lines = server.log.split("\n").filter((line) => line.startsWith("refused")).length;
  assert.ok(lines <= 2 + (performance.now() - begun) / 1000, server.log);
  assert.ok(![forged, secret, key].some((text) => server.log.includes(text)));
  const metrics = await server.request("GET", "/metrics", { headers: { authorization: `Bearer ${key}` } });
  assert.match(metrics.text, /^pushlab_tokens_refused_total\{cause="wrong-signature"\} 200$/m);
});

test("secrets that others can read are warned of", async (t) => {
  const path = folder(t);
  const identity = makeIdentity(t);
  const files = ["secret", "key"].map((name) => join(path, name));
  for (const name of files) writeFileSync(name, randomBytes(32).toString("hex"));
  const file = join(path, "access.toml");
  writeFileSync(
    file,
    `[token]\n[[token.key]]\nalgorithm = "HS256"\nfile = "secret"\n[back_end]\nkey_file = "key"\n${RULES}`,
  );
  for (const [mode, isWarned] of [[0o640, true], [0o604, true], [0o600, false]]) {
    for (const name of [...files, identity.key]) chmodSync(name, mode);
    const checked = (await run(BINARY, ["access", "check", file])).stderr;
    const server = await Server.startSecure(t, identity, ["--access", file]);
    const isOf = (name) => (line) => line.includes(`${name} has mode 0${mode.toString(8)}`);
    for (const name of files) assert.equal(checked.split("\n").some(isOf(name)), isWarned, checked);
    for (const name of [...files, identity.key]) {
      const isTold = () => server.log.split("\n").some(isOf(name));
      if (isWarned) await until(isTold, () => server.log);
      else assert.ok(!isTold(), server.log);
    }
  }
});

test("a cookie does not go with pages of every site", async (t) => {
  const path = folder(t);
  writeFileSync(join(path, "secret"), randomBytes(32).toString("hex"));
  const file = join(path, "access.toml");
  const write = (more) =>
    writeFileSync(file, `[token]\n${more}[[token.key]]\nalgorithm = "HS256"\nfile = "secret"\n${RULES}`);
  const all = ["--access", file, "--allow-origin", "*"];
  const cookie = 'cookie = "token"\n';
  write(cookie);
  assert.throws(
    () => execFileSync(BINARY, ["serve", "--listen", "127.0.0.1:0", ...all], { stdio: "pipe", timeout: 20_000 }),
    (error) => error.status === 1 && /token\.cookie .*--allow-origin/.test(String(error.stderr)),
  );
  await Server.start(t, ["--access", file, "--allow-origin", "https://app.example"]);
  write("");
  const server = await Server.start(t, all);
  write(cookie);
  server.signal("SIGHUP");
  await until(() => /the old rules stay: .*token\.cookie/.test(server.log), () => server.log);
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
    // Keys that would do nothing.
    ["[limits.address]\nsubscriptions = 5\n", /unknown field `subscriptions`/],
    ["[limits.identity]\nconnections = 5\n", /no \[token\]/],
    ['presence = ["room:*"]\n', /no \[token\]/],
    ['[[rule]]\nwho = "everybody"\nchannels = ["a"]\nmay = ["presence"]\n', /presence = \[/],
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
