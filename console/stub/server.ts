// A stand-in for `sluice console` and its API, with generated data: `node stub/server.ts`. The size tests use it.
//
// It serves the build with the policy that the proxy sets, and asks for the token as the proxy does.

import { readFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { extname, join, normalize } from "node:path";
import { gzipSync } from "node:zlib";
import { answer } from "./routes.ts";

export const TOKEN = "stub";
export const POLICY = [
  "default-src 'none'",
  ...["script", "style", "font", "connect", "worker"].map((kind) => `${kind}-src 'self'`),
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
const STATIC = join(import.meta.dirname, "../../sluice/console/static");
const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

const pack = (body: string | Buffer) => gzipSync(body, { level: 1 });

function reply(response: ServerResponse, status: number, type: string, packed: Buffer, cache = "no-store"): void {
  response.writeHead(status, {
    "Content-Type": type,
    "Content-Security-Policy": POLICY,
    "Cache-Control": cache,
    "Content-Encoding": "gzip",
  });
  response.end(status === 204 ? undefined : packed);
}

interface Asset {
  type: string;
  packed: Buffer;
  cache: string;
}

/** The parts of the build, by their paths. Their names change with their content, so a browser may keep them. */
const assets = new Map<string, Asset>();

async function file(path: string): Promise<Asset> {
  const wanted = normalize(path).replace(/^(\.\.[/\\])+/, "");
  const known = assets.get(wanted);
  if (known) return known;
  // Ids have dots, so an address of a view may look like a file.
  if (!wanted.startsWith("/assets/") && wanted !== "/favicon.svg") {
    const packed = pack(await readFile(join(STATIC, "index.html")));
    return { type: "text/html; charset=utf-8", packed, cache: "no-store" };
  }
  const packed = pack(await readFile(join(STATIC, wanted)));
  const type = TYPES[extname(wanted)] ?? "application/octet-stream";
  const found = { type, packed, cache: "public, max-age=31536000, immutable" };
  if (wanted.startsWith("/assets/")) assets.set(wanted, found);
  return found;
}

/** Start the stand-in; resolves with the server once it listens. `delay` makes each answer slow, in ms. */
export function start(port: number, { delay = () => 0 }: { delay?: () => number } = {}) {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://stub");
    if (url.pathname.startsWith("/v1/") || url.pathname === "/console.json") {
      if (request.headers["x-sluice-token"] !== TOKEN) {
        const fault = {
          error: {
            code: "stale_token",
            message: "expected the token of this console, got that of an earlier one",
            hint: "run sluice console again",
          },
        };
        reply(response, 401, "application/json", pack(JSON.stringify(fault)));
        return;
      }
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {};
      const [status, content] = answer(request.method ?? "GET", url, body);
      const packed = pack(JSON.stringify(content));
      setTimeout(() => reply(response, status, "application/json", packed), delay());
      return;
    }
    try {
      const { type, packed, cache } = await file(url.pathname);
      reply(response, 200, type, packed, cache);
    } catch {
      reply(response, 404, "text/plain", pack("not here"));
    }
  });
  return new Promise<typeof server>((resolve) => server.listen(port, "127.0.0.1", () => resolve(server)));
}

if (import.meta.main) {
  const port = Number(process.env.PORT ?? 8484);
  await start(port);
  console.log(`http://127.0.0.1:${port}/#token=${TOKEN}`);
}
