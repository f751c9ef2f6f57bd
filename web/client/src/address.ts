/** The address of one of the server's paths, below `base`, whose own parameters are kept. Those that are undefined are left out. */
export function addressOf(
  base: URL,
  path: string,
  channels: Iterable<string>,
  parameters: Record<string, string | undefined>,
): string {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, "")}/${path}`;
  for (const channel of channels) url.searchParams.append("channel", channel);
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
}

/**
 * Reads where the server is; `ws:` stands for `http:`, and a fragment, which WebSockets refuse, for nothing.
 *
 * @throws TypeError
 */
export function readBase(url: string | URL, page: string | undefined): URL {
  const base = new URL(url, page);
  base.protocol = base.protocol.replace(/^ws/, "http");
  base.hash = "";
  // Platforms refuse to fetch such addresses, and quote them.
  if (base.username || base.password)
    throw new TypeError("user name or password in the address: give getToken instead");
  if (!base.protocol.startsWith("http")) throw new TypeError(`${base.href} is not an HTTP address`);
  return base;
}
