import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Graph } from "../../src/api/types.ts";
import { run } from "../../stub/data.ts";
import { faultsOf } from "./axe.ts";
import { type Stage, sharedStage } from "./console.ts";

let console_: Stage;
beforeAll(async () => {
  console_ = await sharedStage();
});
// A page that a failed test leaves is not the one that the next test expects.
afterEach(({ task }) => (task.result?.state === "fail" ? console_.closePages() : undefined));
afterAll(() => console_.closePages());

const KINDS = ["schedule", "workflow", "dataset"] as const;

/** A name of 60 characters after the namespace: it differs from the others in its middle and at its end. */
const nameOf = (index: number) =>
  `demo.flights.${`s${String(index).padStart(3, "0")}-the-bookings-of-all-airlines-by-airport-and-hour-n${index}`.padEnd(52, "x")}`;

/** A graph of a hundred nodes as the API answers it; `parents` are those that lead to a node. */
function graphOf(parents: (index: number) => number[]): Graph {
  const nodes = Array.from({ length: 100 }, (_, index) => {
    const kind = KINDS[index % 3] as (typeof KINDS)[number];
    const name = nameOf(index);
    return { id: `${kind}:${name}`, kind, name, depth: null, state: kind === "schedule" ? "enabled" : null, dag: null };
  }) as Graph["nodes"];
  const edges = nodes.flatMap((node, index) =>
    parents(index).map((from) => ({
      from: (nodes[from] as (typeof nodes)[number]).id,
      to: node.id,
      kind: "counts" as const,
      text: "COMPLETED",
    })),
  );
  return { around: null, nodes, edges, at_least: false };
}

const SHAPES: Record<string, Graph> = {
  deep: graphOf((index) => (index === 0 ? [] : [index - 1])),
  wide: graphOf((index) =>
    index < 50 ? [] : [index - 50, (index * 7) % 50].filter((at, place, all) => all.indexOf(at) === place),
  ),
  "a tree with leaps": graphOf((index) =>
    index === 0 ? [] : [...new Set([Math.floor((index - 1) / 3), Math.max(0, index - 11)])],
  ),
};

async function openWith(graph: Graph, path = "/demo/graph", width = 1280) {
  const opened = await console_.blank({ width });
  await opened.page.route("**/v1/namespaces/demo/graph*", (route) => route.fulfill({ json: graph }));
  await opened.page.goto(`${console_.origin}${path}`);
  await opened.page.locator(".node").first().waitFor();
  return opened;
}

/** What is drawn: the nodes with their places on screen and the size of their smallest text, and the edges with the
 * nodes at whose borders they begin and end. */
function drawn(page: Page) {
  return page.evaluate(() => {
    const nodes = [...document.querySelectorAll<HTMLElement>(".node")].map((node) => {
      const { left, top, right, bottom, width } = node.getBoundingClientRect();
      const scale = width / node.offsetWidth;
      const fonts = [...node.querySelectorAll("span")].map((text) =>
        Number.parseFloat(getComputedStyle(text).fontSize),
      );
      const cut = [...node.querySelectorAll<HTMLElement>(".node-name")].some(
        (line) => line.scrollWidth > line.offsetWidth,
      );
      return {
        id: node.dataset.node ?? "",
        left,
        top,
        right,
        bottom,
        font: Math.min(...fonts) * scale,
        name: [...node.querySelectorAll(".node-name")].map((line) => line.textContent).join(""),
        title: node.title.split("\n")[0] ?? "",
        cut,
      };
    });
    const edges = [...document.querySelectorAll<SVGGElement>(".edge")].map((edge) => {
      const line = edge.querySelector<SVGPathElement>(".edge-line") as SVGPathElement;
      const at = (length: number) => {
        const { x, y } = line.getPointAtLength(length).matrixTransform(line.getScreenCTM() as DOMMatrix);
        const touched = nodes.filter(
          (node) => x > node.left - 1.5 && x < node.right + 1.5 && y > node.top - 1 && y < node.bottom + 1,
        );
        return touched.map(({ id }) => id);
      };
      return { from: edge.dataset.from, to: edge.dataset.to, begins: at(0), ends: at(line.getTotalLength()) };
    });
    return { nodes, edges };
  });
}

const soon = (read: () => Promise<unknown>) => expect.poll(read, { timeout: 20_000 });
const pairs = (edges: { from?: string; to?: string }[]) =>
  [...new Set(edges.map(({ from, to }) => `${from} > ${to}`))].sort();

const WIDTHS = [1280, 1440, 1920];
/** `make test` plays one width of each shape, `npm run browser` all of them. */
const PLAYED = Object.entries(SHAPES).map(
  ([shape, graph], place) =>
    [shape, graph, process.env.SAMPLE === "yes" ? WIDTHS.slice(place, place + 1) : WIDTHS] as const,
);

describe.each(PLAYED)("%s: a graph of 100 nodes", (_, graph, widths) => {
  test.each(widths)("can be read at %i px, and has the edges of the answer", async (width) => {
    const { page, context, complaints } = await openWith(graph, "/demo/graph", width);
    const { nodes, edges } = await drawn(page);
    expect(nodes.map(({ id }) => id).sort()).toEqual(graph.nodes.map(({ id }) => id).sort());
    expect(Math.min(...nodes.map(({ font }) => font))).toBeGreaterThanOrEqual(11);
    const overlapping = nodes.flatMap((a, index) =>
      nodes
        .slice(index + 1)
        .filter((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
        .map((b) => `${a.id} and ${b.id}`),
    );
    expect(overlapping).toEqual([]);
    // Whole names, or their beginning and end around an ellipsis, and the whole one as the title.
    for (const { id, name, title, cut } of nodes) {
      const whole = id.split(":demo.")[1] ?? "";
      expect(title).toBe(whole);
      expect(cut).toBe(false);
      const [head = "", tail = head] = name.split("…");
      expect(whole.startsWith(head) && whole.endsWith(tail)).toBe(true);
    }
    expect(new Set(nodes.map(({ name }) => name)).size).toBe(100);
    expect(pairs(edges)).toEqual(pairs(graph.edges));
    for (const edge of edges) expect([edge.begins, edge.ends]).toEqual([[edge.from], [edge.to]]);
    // One node at least is on screen, and the page itself does not scroll.
    const box = await page.locator(".graph-box").boundingBox();
    const isSeen = ({ left, right, top, bottom }: (typeof nodes)[number]) =>
      box && left >= box.x && right <= box.x + box.width && top >= box.y && bottom <= box.y + box.height;
    expect(nodes.filter(isSeen).length).toBeGreaterThan(0);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect(complaints).toEqual([]);
    await context.close();
  });
});

const TREE = SHAPES["a tree with leaps"] as Graph;
const idOf = (index: number) => TREE.nodes[index]?.id ?? "";
const isOnScreen = (page: Page, id: string) =>
  page.evaluate((wanted) => {
    const [box, node] = [".graph-box", `[data-node="${CSS.escape(wanted)}"]`].map((selector) =>
      document.querySelector(selector)?.getBoundingClientRect(),
    );
    return Boolean(
      box &&
        node &&
        node.left >= box.left &&
        node.right <= box.right &&
        node.top >= box.top &&
        node.bottom <= box.bottom,
    );
  }, id);

test("the edges stay those of the answer when it changes", async () => {
  const { page, context } = await openWith(TREE);
  const fewer: Graph = {
    ...TREE,
    around: idOf(40),
    nodes: TREE.nodes.slice(20, 60),
    edges: TREE.edges.filter((edge) =>
      [edge.from, edge.to].every((id) => TREE.nodes.slice(20, 60).some((node) => node.id === id)),
    ),
  };
  await page.unroute("**/v1/namespaces/demo/graph*");
  await page.route("**/v1/namespaces/demo/graph*", (route) => route.fulfill({ json: fewer }));
  await page.locator(`[data-node="${idOf(0)}"]`).click();
  await page.getByRole("button", { name: "Show only what is around it" }).click();
  await soon(async () => (await drawn(page)).nodes.length).toBe(40);
  const { edges } = await drawn(page);
  expect(pairs(edges)).toEqual(pairs(fewer.edges));
  for (const edge of edges) expect([edge.begins, edge.ends]).toEqual([[edge.from], [edge.to]]);
  await context.close();
});

test("a graph begins at the chosen node, and a search goes to others", async () => {
  const { page, context } = await openWith(TREE, `/demo/graph?node=${encodeURIComponent(idOf(77))}`);
  expect(await isOnScreen(page, idOf(77))).toBe(true);
  expect(await isOnScreen(page, idOf(0))).toBe(false);
  await page.keyboard.press("/");
  await page.keyboard.type("-n3");
  await page.getByText("11 found").waitFor();
  expect(await page.locator(".node.found").count()).toBe(11);
  await page.keyboard.press("Enter");
  await page.getByText("1 of 11").waitFor();
  await soon(() => isOnScreen(page, idOf(3))).toBe(true);
  await page.keyboard.press("Enter");
  await page.getByText("2 of 11").waitFor();
  await soon(() => isOnScreen(page, idOf(30))).toBe(true);
  expect(new URL(page.url()).searchParams.get("node")).toBe(idOf(30));
  await page.keyboard.type("7777");
  await page.getByText("none found").waitFor();
  await context.close();
});

test("what leads to the chosen node and what follows is marked", async () => {
  const { page, context } = await openWith(TREE, `/demo/graph?node=${encodeURIComponent(idOf(13))}`);
  // By the answer alone.
  const reach = (start: string, by: "from" | "to") => {
    const found = new Set<string>();
    const left = [start];
    for (let at = left.pop(); at !== undefined; at = left.pop()) {
      for (const edge of TREE.edges) {
        const next = edge[by === "from" ? "to" : "from"];
        if (edge[by] === at && !found.has(next)) {
          found.add(next);
          left.push(next);
        }
      }
    }
    return [...found].sort();
  };
  const marked = (part: string) =>
    page.evaluate(
      (name) => [...document.querySelectorAll<HTMLElement>(`.node.${name}`)].map((node) => node.dataset.node).sort(),
      part,
    );
  expect(await marked("before")).toEqual(reach(idOf(13), "to"));
  expect(await marked("after")).toEqual(reach(idOf(13), "from"));
  const near = await page.evaluate(() =>
    [...document.querySelectorAll<SVGGElement>(".edge.near")].map(({ dataset: { from, to } }) => ({ from, to })),
  );
  const [up, down] = [new Set(reach(idOf(13), "to")), new Set(reach(idOf(13), "from"))];
  const isNear = ({ from, to }: { from: string; to: string }) =>
    (up.has(from) && (up.has(to) || to === idOf(13))) || (down.has(to) && (down.has(from) || from === idOf(13)));
  expect(pairs(near)).toEqual(pairs(TREE.edges.filter(isNear)));
  await context.close();
});

test("a graph is zoomed by buttons, keys and the wheel, dragged, and fits", async () => {
  const { page, context } = await openWith(TREE);
  const size = page.locator(".graph-tools .chips button").nth(1);
  const box = page.locator(".graph-box");
  const at = () => box.evaluate((element) => [element.scrollLeft, element.scrollTop]);
  await page.getByRole("button", { name: "Larger" }).click();
  await size.getByText("125 %").waitFor();
  await page.getByRole("button", { name: "Smaller" }).click();
  await size.getByText("100 %").waitFor();
  await page.locator(".node").first().focus();
  await page.keyboard.press("+");
  await size.getByText("125 %").waitFor();
  await page.keyboard.press("0");
  await size.getByText("100 %").waitFor();
  // With ctrl the wheel zooms, and what is under the pointer stays there.
  const node = page.locator(`[data-node="${idOf(0)}"]`);
  await node.hover();
  const pointed = await node.boundingBox();
  const middleOf = (rect: typeof pointed) => (rect?.x ?? 0) + (rect?.width ?? 0) / 2;
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -100);
  await page.keyboard.up("Control");
  await size.getByText("125 %").waitFor();
  const larger = await node.boundingBox();
  expect(larger?.width).toBeCloseTo((pointed?.width ?? 0) * 1.25, 0);
  expect(Math.abs(middleOf(larger) - middleOf(pointed))).toBeLessThan(2);
  // Without it, it scrolls; so does a drag, which chooses nothing.
  const before = await at();
  await page.mouse.wheel(300, 0);
  await soon(async () => (await at())[0]).toBeGreaterThan(before[0] ?? 0);
  const { x, y } = (await box.boundingBox()) as { x: number; y: number };
  const scrolled = await at();
  await page.mouse.move(x + 300, y + 200);
  await page.mouse.down();
  await page.mouse.move(x + 180, y + 170, { steps: 4 });
  await page.mouse.up();
  expect(await at()).toEqual([(scrolled[0] ?? 0) + 120, (scrolled[1] ?? 0) + 30]);
  expect(await page.locator(".node.chosen").count()).toBe(0);
  await page.getByRole("button", { name: "Fit" }).click();
  expect(await box.evaluate((element) => element.scrollWidth <= element.clientWidth + 1)).toBe(true);
  await context.close();
});

test("the map of a large graph goes where it is pressed", async () => {
  const { page, context } = await openWith(TREE);
  const map = page.locator(".graph-map");
  const { x, y, width, height } = (await map.boundingBox()) as { x: number; y: number; width: number; height: number };
  await page.mouse.click(x + width - 4, y + height / 2);
  const scrolled = await page
    .locator(".graph-box")
    .evaluate((element) => element.scrollLeft + element.clientWidth - element.scrollWidth);
  expect(Math.abs(scrolled)).toBeLessThan(2);
  await context.close();
});

test("arrow keys go along the edges, and Tab passes a graph", async () => {
  const { page, context } = await openWith(TREE);
  await page.locator(`[data-node="${idOf(0)}"]`).focus();
  const at = () => page.evaluate(() => (document.activeElement as HTMLElement).dataset.node);
  await page.keyboard.press("ArrowRight");
  const next = await at();
  expect(TREE.edges.some(({ from, to }) => from === idOf(0) && to === next)).toBe(true);
  await page.keyboard.press("Enter");
  expect(new URL(page.url()).searchParams.get("node")).toBe(next);
  expect(await page.locator(".node[tabindex='0']").count()).toBe(1);
  await page.keyboard.press("ArrowLeft");
  expect(await at()).toBe(idOf(0));
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.closest(".graph-box"))).toBeNull();
  await context.close();
});

test("a list has each node with those before and after it", async () => {
  const { page, context } = await console_.blank();
  await page.route("**/v1/namespaces/demo/graph*", (route) => route.fulfill({ json: TREE }));
  await page.goto(`${console_.origin}/demo/graph?as=list`);
  const table = page.getByRole("table", { name: "Schedules, workflows and datasets" });
  await table.waitFor();
  expect(await table.locator("tbody tr").count()).toBe(100);
  const titleOf = (index: number) => idOf(index).split(":demo.")[1] ?? "";
  const row = table.getByRole("row").filter({ has: page.locator("td:first-child", { hasText: titleOf(13) }) });
  const others = (column: number) => row.locator("td").nth(column).getByRole("button").allTextContents();
  const ends = (by: "from" | "to") =>
    TREE.edges
      .filter((edge) => edge[by] === idOf(13))
      .map((edge) => edge[by === "from" ? "to" : "from"].split(":demo.")[1] ?? "");
  expect((await others(2)).sort()).toEqual(ends("to").sort());
  expect((await others(3)).sort()).toEqual(ends("from").sort());
  expect(await faultsOf(page)).toEqual([]);
  await row.getByRole("button", { name: titleOf(13) }).click();
  await page.getByRole("heading", { name: titleOf(13) }).waitFor();
  await page.getByRole("button", { name: "Graph", exact: true }).click();
  await soon(() => isOnScreen(page, idOf(13))).toBe(true);
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    expect(await faultsOf(page)).toEqual([]);
  }
  await context.close();
});

test("schedules have the state of their last run, the failed first", async () => {
  const { page, context } = await console_.blank();
  const failed = [60, 90];
  await page.route("**/v1/namespaces/demo/graph*", (route) => route.fulfill({ json: TREE }));
  await page.route("**/v1/namespaces/demo/glance", async (route) => {
    const { schedules } = route.request().postDataJSON() as { schedules: string[] };
    const items = schedules.map((schedule) => ({
      schedule,
      state: "enabled",
      why: "waits for 1 partition",
      next_fire: null,
      waiting: 0,
      at_least: false,
      last: ["SUCCEEDED", failed.some((index) => nameOf(index) === schedule) ? "FAILED" : "SUCCEEDED"].map(
        (state, index) => ({
          run_id: `${schedule}.mf3k0p2q.${index}`,
          attempt: 1,
          state,
          at: new Date(Date.now() - (2 - index) * 600_000).toISOString(),
          count: 1,
        }),
      ),
    }));
    await route.fulfill({ json: { items, gone: [] } });
  });
  await page.goto(`${console_.origin}/demo/graph`);
  // It begins where something has failed.
  await soon(() => isOnScreen(page, idOf(60))).toBe(true);
  expect(await page.locator(".node.tone-bad").count()).toBe(2);
  expect(await page.locator(`[data-node="${idOf(60)}"] .node-note`).textContent()).toMatch(/^✗FAILED · (9|10) m ago$/);
  const button = page.getByRole("button", { name: "2 failed last" });
  await button.click();
  await page.getByRole("heading", { name: `flights.s060` }).waitFor();
  await button.click();
  await page.getByRole("heading", { name: `flights.s090` }).waitFor();
  await soon(() => isOnScreen(page, idOf(90))).toBe(true);
  await page.getByRole("complementary").getByText("waits for 1 partition").waitFor();
  await context.close();
});

test("the graph of a DAG has its edges, with what they need", async () => {
  const { page, context } = await console_.walk("/demo/dags/flights/nightly");
  await page.locator(".node").first().waitFor();
  const { nodes, edges } = await drawn(page);
  expect(pairs(edges)).toEqual([
    "evaluate > publish",
    "ewr > evaluate",
    "jfk > evaluate",
    "prepare > ewr",
    "prepare > jfk",
  ]);
  for (const edge of edges) expect([edge.begins, edge.ends]).toEqual([[edge.from], [edge.to]]);
  expect(Math.min(...nodes.map(({ font }) => font))).toBeGreaterThanOrEqual(11);
  await page.locator(".edge-label", { hasText: "within 6h" }).waitFor();
  const placesOf = () => page.locator(".node").evaluateAll((all) => all.map((node) => (node as HTMLElement).offsetTop));
  const places = await placesOf();
  await page.locator('[data-node="jfk"]').click();
  expect(await placesOf(), "choosing a node moves none").toEqual(places);
  await page.locator('[data-node="evaluate"]').click();
  await page.getByText("Runs once each node before it has ended as its edge needs").waitFor();
  await context.close();
});

/** A run of the DAG with a hundred nodes: in each branch one node is in each state, and the last waits for all. */
const STATES = [
  "SUCCEEDED",
  "FAILED",
  "BLOCKED",
  "SKIPPED",
  "ABORTED",
  "WAITING",
  "PENDING",
  "RUNNING",
  "RETRYING",
  "CANCELLED",
];
const nodeOf = (index: number) =>
  `load-the-bookings-of-one-airline-into-the-tables-of-part-${String(index).padStart(3, "0")}`;
const RUN_NODES = Object.fromEntries(
  Array.from({ length: 100 }, (_, index) => {
    const state = index === 0 ? "SUCCEEDED" : (STATES[index % 10] as string);
    const ran = ["SUCCEEDED", "FAILED", "RUNNING", "RETRYING", "CANCELLED"].includes(state);
    return [
      nodeOf(index),
      {
        state,
        why: `${state.toLowerCase()} because of a test`,
        code: null,
        run_id: ran ? `demo.flights.nightly~1f0c22ab~n${index}.mf3k0p2q.0` : null,
        started_at: ran ? new Date(Date.now() - 600_000).toISOString() : null,
        ended_at: ["SUCCEEDED", "FAILED"].includes(state) ? new Date(Date.now() - 400_000).toISOString() : null,
        attempt: ran ? 2 : null,
        round: 1,
        workflow: "demo.flights.load",
        when: index === 99 ? "all_done" : "all_succeeded",
      },
    ];
  }),
);
const RUN_EDGES = Array.from({ length: 98 }, (_, index) => index + 1)
  .flatMap((index) => [
    { from: nodeOf(0), to: nodeOf(index) },
    { from: nodeOf(index), to: nodeOf(99) },
  ])
  .map((edge) => ({ ...edge, on: ["COMPLETED"], within: null }));

test("a run of a DAG has its own 100 nodes, with states and reasons", async () => {
  const { page, context, complaints } = await console_.blank({ width: 1440 });
  await page.route(/\/dags\/nightly\/runs\/[^/]+$/, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ json: { ...(await answer.json()), nodes: RUN_NODES, edges: RUN_EDGES } });
  });
  await page.goto(`${console_.origin}/demo/dags/flights/nightly`);
  await soon(async () => (await drawn(page)).nodes.length).toBe(100);
  const { nodes, edges } = await drawn(page);
  expect(pairs(edges)).toEqual(pairs(RUN_EDGES));
  for (const edge of edges) expect([edge.begins, edge.ends]).toEqual([[edge.from], [edge.to]]);
  expect(Math.min(...nodes.map(({ font }) => font))).toBeGreaterThanOrEqual(11);
  // It begins at the first node that has failed.
  await soon(() => isOnScreen(page, nodeOf(1))).toBe(true);
  for (const [index, state] of STATES.entries()) {
    const at = index === 0 ? 10 : index;
    expect(await page.locator(`[data-node="${nodeOf(at)}"] .node-note`).textContent()).toContain(state);
    await page.locator(`[data-node="${nodeOf(at)}"]`).click();
    const side = page.getByRole("complementary");
    await side.getByText(`${state.toLowerCase()} because of a test`).waitFor();
    const living = ["RUNNING", "RETRYING"].includes(state);
    expect(await side.getByRole("button", { name: "Cancel the run" }).count()).toBe(living ? 1 : 0);
    expect(await side.getByRole("button", { name: "Run from here again" }).count()).toBe(1);
  }
  await page.getByPlaceholder("Find a node").fill("part-099");
  await page.keyboard.press("Enter");
  await page.getByRole("complementary").getByText("however they ended").waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test("what led to a run is a graph with the edges of the answer", async () => {
  const { page, context } = await console_.blank();
  const nodes = ["a", "b", "c", "d"].map((id, index) => ({
    id: `demo.flights.${id}.mf3k0p2q.${index}`,
    kind: "run",
    schedule: `demo.flights.${id}`,
    workflow: null,
    state: "SUCCEEDED",
    reason: "",
    code: null,
    at: new Date().toISOString(),
    ended_at: null,
    depth: Math.floor(index / 2) - 1,
  }));
  const ids = nodes.map(({ id }) => id) as [string, string, string, string];
  const links = [
    { from: ids[0], to: ids[2], text: "COMPLETED" },
    { from: ids[1], to: ids[3], text: "COMPLETED" },
  ];
  await page.route("**/v1/runs/*/lineage*", (route) =>
    route.fulfill({ json: { run_id: ids[2], nodes, edges: links, at_least: false } }),
  );
  await page.goto(`${console_.origin}/demo/runs/${run(25).run_id}?tab=lineage`);
  await page.locator(".node").first().waitFor();
  const { edges } = await drawn(page);
  expect(pairs(edges)).toEqual(pairs(links));
  for (const edge of edges) expect([edge.begins, edge.ends]).toEqual([[edge.from], [edge.to]]);
  const side = page.getByRole("complementary");
  await side.getByText("this run").waitFor();
  await side.getByRole("button", { name: "flights.a" }).click();
  await side.getByRole("link", { name: "flights.a" }).waitFor();
  await context.close();
});

test("a node with elements has their counts, and runs one or all failed again", async () => {
  const { page, context } = await console_.walk("/demo/dags/flights/nightly?node=jfk");
  const side = page.getByRole("complementary");
  await side.getByText("28 of 30 succeeded; 2 failed").waitFor();
  expect(await page.locator('[data-node="jfk"] .node-note').textContent()).toBe("✗2 of 30 failed");
  const items = side.locator(".elements > li");
  await items.nth(0).getByText("jfk[3]").waitFor();
  expect(await items.count()).toBe(10);
  const bodies: unknown[] = [];
  page.on("request", (request) => request.method() === "POST" && bodies.push(request.postDataJSON()));
  const again = async (button: ReturnType<Page["locator"]>, command: string) => {
    await button.click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(command).waitFor();
    await dialog.getByRole("button", { name: "Run again" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  await again(items.nth(1).getByRole("button", { name: "Again" }), "--from 'jfk[17]'");
  await again(side.getByRole("button", { name: "Run 2 failed again" }), "--from 'jfk[failed]'");
  expect(bodies).toEqual([
    { from: "jfk", elements: [17] },
    { from: "jfk", elements: "failed" },
  ]);
  expect(await items.nth(2).getByRole("button").count()).toBe(0);
  await side.getByRole("button", { name: "Show 20 more" }).click();
  expect(await items.count()).toBe(30);
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    expect(await faultsOf(page)).toEqual([]);
  }
  await context.close();
});

test("a branch that was not taken is dashed, and results can be read", async () => {
  const { page, context } = await console_.blank();
  const state = (name: string, why: string, more: object = {}) => ({
    state: name,
    why,
    code: null,
    run_id: null,
    started_at: null,
    ended_at: null,
    workflow: "demo.flights.load",
    when: "all_succeeded",
    ...more,
  });
  const nodes = {
    scan: state("SUCCEEDED", "the run succeeded", { result: { mode: "full", files: ["a", "b"] } }),
    full: state("RUNNING", "it runs"),
    delta: state("SKIPPED", "the result of scan has mode full"),
    big: state("FAILED", "disk full", { result_refused: "expected a result of at most 10,000 bytes" }),
  };
  const edges = [
    { from: "scan", to: "full", on: ["COMPLETED"], within: null, if: { mode: ["full"] } },
    { from: "scan", to: "delta", on: ["COMPLETED"], within: null, if: { mode: [{ "anything-but": "full" }] } },
    { from: "big", to: "delta", on: ["COMPLETED"], within: null, if: { size: [{ numeric: [">", 1] }] } },
  ];
  await page.route(/\/dags\/nightly\/runs\/[^/]+$/, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ json: { ...(await answer.json()), nodes, edges } });
  });
  await page.goto(`${console_.origin}/demo/dags/flights/nightly?node=scan`);
  await page.locator('[data-node="scan"]').waitFor();
  const labels = await page.locator(".edge-label").allTextContents();
  expect(labels).toEqual(expect.arrayContaining(["if mode is full", "if mode is not full"]));
  const leftOut = await page.evaluate(() =>
    [...document.querySelectorAll<SVGGElement>(".edge.left-out")].map(({ dataset: { from, to } }) => ({ from, to })),
  );
  expect(pairs(leftOut)).toEqual(["big > delta", "scan > delta"]);
  const side = page.getByRole("complementary");
  expect(JSON.parse((await side.locator("pre").textContent()) ?? "")).toEqual({ mode: "full", files: ["a", "b"] });
  const again = side.getByRole("button", { name: "Run from here again" });
  expect(await again.count()).toBe(1);
  await page.locator('[data-node="delta"]').click();
  await side.getByText("the result of scan has mode full").waitFor();
  expect(await again.count(), "no run begins at a node that was not chosen").toBe(0);
  await side.getByText("COMPLETED if mode is not full").waitFor();
  await side.getByText('COMPLETED if size [{"numeric":[">",1]}]').waitFor();
  await page.locator('[data-node="big"]').click();
  await side.getByText("Its result was refused: expected a result of at most 10,000 bytes").waitFor();
  await context.close();
});
