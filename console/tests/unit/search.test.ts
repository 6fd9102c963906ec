import { expect, test } from "vitest";
import { parseSearch, readSearch, writeSearch } from "../../src/lib/search";

test("what a view writes into the address it reads again", () => {
  const search = {
    zone: "local",
    q: "state:hold a+b&c=d",
    day: "2026-11-22",
    to: "2026-11-22T10:00:00Z",
    open: "workflow:demo.a",
  };
  expect(readSearch(parseSearch(writeSearch(search).slice(1)))).toEqual(search);
});

test("an address of another version loses only what is unknown", () => {
  expect(readSearch({ q: "clean", panel: "open", zone: "mars", day: "yesterday", span: "1e9", limit: 5 })).toEqual({
    q: "clean",
  });
});

test("numbers and words of an address stay text", () => {
  expect(readSearch(parseSearch("q=1&schedule=true"))).toEqual({ q: "1", schedule: "true" });
});

test("an empty search has no question mark", () => {
  expect(writeSearch({ q: "", zone: undefined })).toBe("");
});

test("the same search has one address", () => {
  expect(writeSearch({ q: "a", zone: "local" })).toBe(writeSearch({ zone: "local", q: "a" }));
});
