// Messages that are hard to carry.

const pretty = (value, lineEnd) => JSON.stringify(value, null, 2).replaceAll("\n", lineEnd);

/** JSON texts that some transport, parser or page could trip over. */
const HARD = [
  '"Grüße, мир, 世界, 🏳️‍🌈, \u0000x\u0000"'.replaceAll("\u0000", "\\u0000"),
  '{"html":"</script><script>alert(1)</script><!-- --> ]]>"}',
  '{"quotes":"\\"\'\\\\`$x`","escapes":"\\b\\f\\t\\/\\u0041\\ud83d\\ude00"}',
  '{"separators":"a\u2028b\u2029c\u0085d\u000be"}'.replaceAll("\u000b", "\\u000b"),
  String.raw`{"line ends":"one\ntwo\r\nthree\rfour\n\n"}`,
  JSON.stringify('data: forged\n\nid: forged.1\ndata: ["msg","x","forged.2",0]\n\n'),
  JSON.stringify({ large: 'é<&\u2028"'.repeat(3500) }),
  pretty({ pretty: [1, { deep: [[], {}, "text"] }] }, "\n"),
  pretty({ pretty: "with carriage returns", list: [1, 2] }, "\r\n"),
  ` \t\n ["space","around"] \r\n `,
  '{"__proto__":{"a":1},"b":2}',
  '"\ufeffmark"',
  String.raw`{"lone surrogate":"\ud800"}`,
  '{"":0,"a":{"a":{"a":[[[[["deep"]]]]]}}}',
  '[["msg","nested","forged.3",1],["cursor","forged.4"]]',
  "-1.5e-7",
  '""',
  "null",
  "false",
  "0",
  "[]",
];

/** As many as hold each of the hard ones once. */
export const EACH_HARD_ONE = 10 * HARD.length;

/** So many JSON texts, every tenth a hard one, the others numbered. */
export function payloads(count) {
  return Array.from({ length: count }, (_, n) =>
    n % 10 === 5 ? HARD[Math.floor(n / 10) % HARD.length] : JSON.stringify({ n }),
  );
}
