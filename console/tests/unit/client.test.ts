import { expect, test } from "vitest";
import { faultOf, parsed } from "../../src/api/client";

test("what changes the direction of a text becomes visible", () => {
  const hostile = { name: "a\u202eexe", nested: [{ why: "\u2066b\u2069" }] };
  const shown = { name: "a\ufffdexe", nested: [{ why: "\ufffdb\ufffd" }] };
  expect(parsed(JSON.stringify(hostile))).toEqual(shown);
  expect(parsed(String.raw`{"name": "a\u202Eexe"}`)).toEqual({ name: "a\ufffdexe" });
});

test("other texts stay, also those that look like an escape", () => {
  const plain = { a: "שלום \u200f", b: String.raw`\u202e`, c: 5, d: null, e: ["größer"] };
  expect(parsed(JSON.stringify(plain))).toEqual(plain);
});

test("a refusal is made visible, too", () => {
  expect(faultOf(400, JSON.stringify({ error: { code: "invalid", message: "got \u202ex" } })).message).toBe(
    "got \ufffdx",
  );
});
