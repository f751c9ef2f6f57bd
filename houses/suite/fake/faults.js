// One fault each, and nothing else wrong: a function that makes the parts of the server it replaces.

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const often = (tell, step) => {
  let count = 0;
  return (change) => {
    count += 1;
    if (count % 7 === 0) step(change);
    else tell(change);
  };
};

/** Changes the arguments first. */
const before = (change) => () => ({
  call: ({ connection, name, args, next }) => next(connection.session, name, change(name, args)),
});

/** Changes the answer. */
const after = (change) => () => ({
  async call({ connection, name, args, next }) {
    return change(await next(connection.session), name, args, connection);
  },
});

export const FAULTS = {
  "loses some changes": (tell) => ({ tell: often(tell, () => {}) }),
  "tells some changes twice": (tell) => ({
    tell: often(tell, (change) => {
      tell(change);
      tell(change);
    }),
  }),
  "tells some changes too late": (tell) => {
    let held = null;
    return {
      tell(change) {
        if (held === null && change.item.version % 7 === 0) {
          held = change;
          return;
        }
        tell(change);
        if (held) tell(held);
        held = null;
      },
    };
  },
  "tells some changes to half of them": (tell) => {
    let isOdd = false;
    return {
      connected(connection) {
        isOdd = !isOdd;
        connection.isDeaf = isOdd;
      },
      tell: often(tell, (change) => tell(change, ({ isDeaf }) => !isDeaf)),
    };
  },
  "does not tell whoever did it": (tell) => {
    let doer;
    return {
      call({ connection, next }) {
        doer = connection;
        return next(connection.session);
      },
      tell: (change) => tell(change, (connection) => connection !== doer),
    };
  },
  "tells of registrations": (tell) => ({
    async call({ connection, name, next }) {
      const answer = await next(connection.session);
      if (name === "register" && !answer.error) tell({ kind: "registered", name: answer.name });
      return answer;
    },
  }),
  "tells items as they were": (tell) => {
    const last = new Map();
    return {
      tell({ kind, item }) {
        const leading = kind === "bid" ? last.get(item.id).leading : item.leading;
        last.set(item.id, item);
        tell({ kind, item: { ...item, leading } });
      },
    };
  },
  "escapes text": before((name, args) =>
    name === "add" ? JSON.parse(JSON.stringify(args).replaceAll("<", "&lt;")) : args,
  ),
  "cuts long text": before((name, args) =>
    name === "add" && typeof args?.description === "string"
      ? { ...args, description: args.description.slice(0, 1000) }
      : args,
  ),
  "pads short passwords": before((_, args) =>
    typeof args?.password === "string" ? { ...args, password: args.password.padEnd(8, "0") } : args,
  ),
  "spells names in small letters": before((_, args) =>
    args?.password && typeof args.name === "string"
      ? { ...args, name: args.name.toLowerCase() }
      : args,
  ),
  "trims names": before((_, args) =>
    args?.password && typeof args.name === "string" ? { ...args, name: args.name.trim() } : args,
  ),
  "tells names apart by capitals": before((_, args) =>
    args?.password && /^N.*[a-z]|^n/.test(args.name) ? { ...args, name: `${args.name}-n` } : args,
  ),
  "says that there is no such name": () => {
    const names = new Set();
    return {
      async call({ connection, name, args, next }) {
        const answer = await next(connection.session);
        if (name === "register" && !answer.error) names.add(answer.name);
        if (answer.error === "unauthorized" && name === "log-in" && !names.has(args.name))
          return { ...answer, message: "there is nobody of this name" };
        return answer;
      },
    };
  },
  "finds what every object has": after((answer, name, args) =>
    name === "log-in" && args?.name in {} && answer.error ? { name: args.name } : answer,
  ),
  "takes equal names at once": () => {
    const fresh = new Set();
    return {
      async call({ connection, name, args, next }) {
        const answer = await next(connection.session);
        if (name !== "register") return answer;
        const key = String(args?.name).toLowerCase();
        if (answer.error === "name-taken" && fresh.has(key)) return { name: args.name };
        fresh.add(key);
        setTimeout(() => fresh.delete(key), 100);
        return answer;
      },
    };
  },
  "has one session for all": () => {
    const session = {};
    return { call: ({ next }) => next(session) };
  },
  "asks nobody to log in": () => ({
    call({ connection, next }) {
      connection.session.account ??= { name: "nobody" };
      return next(connection.session);
    },
  }),
  "forgets accounts with their connections": () => {
    const gone = new Set();
    return {
      closed: ({ session }) => gone.add(session.account?.name),
      call: ({ connection, name, args, next }) =>
        name === "log-in" && gone.has(args?.name)
          ? { error: "unauthorized", message: "name and password do not belong together" }
          : next(connection.session),
    };
  },
  "leaves a name behind that nobody has": () => {
    const names = new Set();
    return {
      async call({ connection, name, args, next }) {
        if (name !== "register") return next(connection.session);
        if (names.has(args.name)) return { error: "name-taken", message: "somebody has this name" };
        names.add(args.name);
        await sleep(20);
        return connection.isOpen ? next(connection.session) : undefined;
      },
    };
  },
  "lets anybody remove": () => ({
    async call({ connection, name, next }) {
      const answer = await next(connection.session);
      if (name !== "remove" || answer.error !== "forbidden") return answer;
      const { items } = await next(connection.session, "list", {});
      return { item: items[0] };
    },
  }),
  "lists what is no longer so": () => {
    let list;
    return {
      async call({ connection, name, next }) {
        const answer = await next(connection.session);
        if (name !== "list") return answer;
        const last = list ?? answer;
        list = answer;
        return last;
      },
    };
  },
  "takes equal bids at once": () => ({
    async call({ connection, name, args, next }) {
      const answer = await next(connection.session);
      if (name !== "bid" || answer.leading?.amount_cents !== args.amount_cents) return answer;
      const { items } = await next(connection.session, "list", {});
      return { item: items.find(({ id }) => id === args.id) };
    },
  }),
  "takes bids below the leading one": () => ({
    async call({ connection, name, args, next }) {
      const answer = await next(connection.session);
      if (name !== "bid" || answer.error !== "outbid" || !answer.leading) return answer;
      const { items } = await next(connection.session, "list", {});
      return { item: items.find(({ id }) => id === args.id) };
    },
  }),
  "refuses bids on own items": () => ({
    async call({ connection, name, args, next }) {
      if (name === "bid" && connection.session.account) {
        const { items } = await next(connection.session, "list", {});
        if (items.find(({ id }) => id === args?.id)?.owner === connection.session.account.name)
          return { error: "forbidden", message: "this is your own" };
      }
      return next(connection.session);
    },
  }),
  "names a bid that would not be taken": after((answer) =>
    answer.error === "outbid" ? { ...answer, least_cents: answer.least_cents - 1 } : answer,
  ),
  "finds what is not there": after((answer) =>
    answer.error === "not-found" ? { ...answer, error: "expired" } : answer,
  ),
  "lists own bids in no order": after((answer, name) =>
    name === "own-bids" && answer.bids ? { bids: answer.bids.reverse() } : answer,
  ),
  "tells of no end": (tell) => ({
    tell(change) {
      if (change.kind !== "ended") tell(change);
    },
  }),
  "ends auctions early": (tell) => ({
    tell(change) {
      tell(change);
      if (change.kind === "added")
        setTimeout(() => tell({ ...change, kind: "ended" }), 1000).unref();
    },
  }),
  "ends far auctions at once": (tell) => ({
    tell(change) {
      tell(change);
      const { expires_ms } = change.item;
      // The mistake itself: what is longer than 31 bits is a millisecond.
      if (change.kind === "added")
        setTimeout(() => tell({ ...change, kind: "ended" }), expires_ms - Date.now()).unref();
    },
  }),
  "takes bids after the end": () => ({
    async call({ connection, name, args, next }) {
      const answer = await next(connection.session);
      if (name !== "bid" || answer.error !== "expired") return answer;
      const { items } = await next(connection.session, "list", {});
      return { item: items.find(({ id }) => id === args.id) };
    },
  }),
  "ends what is removed": (tell) => ({
    tell(change) {
      tell(change);
      if (change.kind === "removed")
        setTimeout(() => tell({ ...change, kind: "ended" }), 1000).unref();
    },
  }),
  "ends one auction at a time": (tell) => {
    const times = new Set();
    return {
      tell(change) {
        if (change.kind === "ended" && times.has(change.item.expires_ms)) return;
        if (change.kind === "ended") times.add(change.item.expires_ms);
        tell(change);
      },
    };
  },
  "has defaults": before((name, args) =>
    name === "add" ? { description: "", minimum_cents: 1, ...args } : args,
  ),
  "makes text of what is none": before((name, args) =>
    name === "add" ? { ...args, name: String(args?.name) } : args,
  ),
  "makes numbers of text": before((name, args) =>
    name === "bid" && args?.amount_cents > 0
      ? { ...args, amount_cents: Math.floor(args.amount_cents) }
      : args,
  ),
  "overlooks more arguments": before((_, args) => {
    if (args === null || typeof args !== "object") return args;
    const { more, owner, ["__proto__"]: __, ...rest } = args;
    return rest;
  }),
  "calls without an object": before(
    (_, args) => args ?? { name: "somebody", password: "correct horse" },
  ),
  "fails at long arguments": () => ({
    call: ({ connection, args, next }) =>
      JSON.stringify(args ?? null).length > 10_000 ? undefined : next(connection.session),
  }),
  "ends at endless arguments": () => ({
    call({ connection, args, next }) {
      if (JSON.stringify(args ?? null).length > 1_000_000) process.exit(1);
      return next(connection.session);
    },
  }),
  "does not answer other calls": after((answer) =>
    answer.message === "there is no such call" ? undefined : answer,
  ),
  "ends at garbage": () => ({ garbage: () => process.exit(1) }),
  "ends at what a session says": () => ({ said: () => process.exit(1) }),
  "ends at frames": () => ({ frames: () => process.exit(1) }),
  "does what nobody said": () => {
    const offer = { name: "a chair", description: "", minimum_cents: 1 };
    return {
      frames(_, house) {
        const expires_ms = Date.now() + 3_600_000;
        house.call({ account: { name: "nobody" } }, "add", { ...offer, expires_ms });
      },
    };
  },
  "mixes answers up": () => {
    let last;
    return {
      async call({ connection, number, next }) {
        last = number;
        await sleep(1);
        return next(connection.session);
      },
      number: () => last,
    };
  },
  "does half of what was cut": (tell) => {
    const undone = new Set();
    return {
      async call({ connection, name, next }) {
        const answer = await next(connection.session);
        if (name !== "add") return answer;
        await sleep(10);
        if (connection.isOpen) return answer;
        undone.add(answer.item.id);
        await next(connection.session, "remove", { id: answer.item.id });
      },
      tell(change) {
        if (change.kind !== "removed" || !undone.has(change.item.id)) tell(change);
      },
    };
  },
  "keeps memory of all who came": () => {
    const kept = [];
    return { connected: () => kept.push(Buffer.alloc(1 << 20, 1)) };
  },
  "keeps connections open": () => ({ isHalfOpen: true }),
  "tells nothing any more to whom it refused": (tell) => {
    const deaf = new Set();
    return {
      async call({ connection, next }) {
        const answer = await next(connection.session);
        if (answer.error === "bad-request") deaf.add(connection);
        return answer;
      },
      tell: (change) => tell(change, (connection) => !deaf.has(connection)),
    };
  },
};
