// Counts what a framework's client asks of the subject, for it does not say. Loaded before that client, which may keep
// what it finds. Nothing but the count is added: requests are sent as they are.

"use strict";

(() => {
  /** The page's own requests, to where it comes from, do not count. */
  const count = (address) => {
    if (new URL(address, location.href).host !== location.host) globalThis.countRequestOfFramework();
  };

  for (const name of ["WebSocket", "EventSource"]) {
    globalThis[name] = new Proxy(globalThis[name], {
      construct(target, parameters) {
        count(parameters[0]);
        return new target(...parameters);
      },
    });
  }

  const { fetch } = globalThis;
  globalThis.fetch = (request, options) => {
    count(request.url ?? request);
    return fetch(request, options);
  };

  const { open, send } = XMLHttpRequest.prototype;
  const addresses = new WeakMap();
  XMLHttpRequest.prototype.open = function (method, address, ...more) {
    addresses.set(this, address);
    return open.call(this, method, address, ...more);
  };
  XMLHttpRequest.prototype.send = function (body) {
    count(addresses.get(this));
    return send.call(this, body);
  };
})();
