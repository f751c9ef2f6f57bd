// The examples of docs/deployment.md, run as they stand there but for addresses, certificates and files.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { example, put } from "../foreign/documents.js";
import { makeIdentity, Server } from "../foreign/harness.js";
import { startOnFreePort } from "../foreign/programs.js";

const DOCUMENT = "deployment.md";
/** Of whom the examples let publish with POST: a network, and who stands for it. */
export const BACK_END = ["10.0.0.0/8", "127.0.0.9"];

/** The server of the example's service, with this access file. */
export function startServer(t, access) {
  const file = join(folder(t), "access.toml");
  writeFileSync(file, access);
  const service = put(example(DOCUMENT, "A service of systemd"), [["/etc/pushlab/access.toml", file]]);
  const [, command] = /^ExecStart=\S+ serve ((?:.*\\\n)*.*)$/m.exec(service);
  return Server.start(t, command.replaceAll("\\\n", " ").trim().split(/\s+/));
}

/** The proxies: each starts in front of a server, and gives the port on which it speaks TLS. */
export const PROXIES = {
  nginx: async (t, server) => {
    const [path, { certificate, key }] = [folder(t), makeIdentity(t)];
    const options = (port) => {
      const configuration = put(example(DOCUMENT, "Behind nginx"), [
        ["listen 443 ", `listen 127.0.0.1:${port} `],
        ["/etc/ssl/push.example.org.pem", certificate],
        ["/etc/ssl/push.example.org.key", key],
        ["127.0.0.1:8000", `127.0.0.1:${server.port}`],
        BACK_END,
      ]);
      const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
      const around = kinds.map((kind) => `${kind}_temp_path ${path}/${kind};`).join("\n");
      const user = process.getuid() === 0 ? "user root;" : "";
      const file = join(path, "nginx.conf");
      const main = `daemon off; worker_processes 1; pid ${path}/nginx.pid; ${user} events {}`;
      writeFileSync(file, `${main}\nhttp {\naccess_log off;\n${around}\n${configuration}}\n`);
      return ["-p", path, "-e", "stderr", "-c", file];
    };
    return (await startOnFreePort(t, "nginx", options, path)).port;
  },
  haproxy: async (t, server) => {
    const [path, { certificate, key }] = [folder(t), makeIdentity(t)];
    const both = join(path, "both.pem");
    writeFileSync(both, readFileSync(certificate, "utf8") + readFileSync(key, "utf8"));
    const options = (port) => {
      const file = join(path, "haproxy.cfg");
      const configuration = put(example(DOCUMENT, "Behind HAProxy"), [
        ["bind :443 ", `bind 127.0.0.1:${port} `],
        ["/etc/ssl/push.example.org.pem", both],
        ["127.0.0.1:8000", `127.0.0.1:${server.port}`],
      ]);
      writeFileSync(file, configuration);
      return ["-db", "-f", file];
    };
    return (await startOnFreePort(t, "haproxy", options, path)).port;
  },
};

export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "pushlab-deployment-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
