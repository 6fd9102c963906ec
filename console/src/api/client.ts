// Requests to the proxy that `sluice console` runs: the token, errors as the API writes them, and how slow answers are.

import type { Answers } from "./types";

export type Operation = keyof Answers;
type PathOf<Method extends string> = Operation extends infer O
  ? O extends `${Method} ${infer Path}`
    ? Path
    : never
  : never;

export interface Fault {
  code: string;
  message: string;
  field?: string | null;
  hint?: string | null;
}

/** A refusal of the API, or a request without an answer (`status` 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly fault: Fault,
  ) {
    super(fault.message);
  }
}

const TOKEN = "sluice-token";
const PATIENCE_MS = 40_000;

/** Take the token out of the address, where `sluice console` puts it, and keep it for this port. */
export function takeToken(): void {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found?.[1]) return;
  localStorage.setItem(TOKEN, decodeURIComponent(found[1]));
  history.replaceState(history.state, "", location.pathname + location.search);
}

export const hasToken = (): boolean => localStorage.getItem(TOKEN) !== null;

/** How long the last answers took, in ms: a page that polls waits longer after slow ones. */
export const pace = { last: 0 };

export interface Request {
  query?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
  /** The request starts something: a repeat with the same key counts once. */
  key?: string;
  signal?: AbortSignal;
}

function address(path: string, query: Request["query"]): string {
  const given = Object.entries(query ?? {}).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  const words = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return words ? `${path}?${words}` : path;
}

export async function send<T>(method: string, path: string, request: Request = {}): Promise<T> {
  const headers: Record<string, string> = { "X-Sluice-Token": localStorage.getItem(TOKEN) ?? "" };
  if (request.body !== undefined) headers["Content-Type"] = "application/json";
  if (request.key) headers["Idempotency-Key"] = request.key;
  const began = performance.now();
  let answer: Response;
  try {
    answer = await fetch(address(path, request.query), {
      method,
      headers,
      body: request.body === undefined ? undefined : JSON.stringify(request.body),
      signal: AbortSignal.any([AbortSignal.timeout(PATIENCE_MS), ...(request.signal ? [request.signal] : [])]),
    });
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new ApiError(0, {
      code: "not_reachable",
      message: "the console's proxy does not answer",
      hint: "see whether `sluice console` still runs, or start it again",
    });
  } finally {
    pace.last = performance.now() - began;
  }
  const text = await answer.text();
  if (answer.ok) return (text ? parsed(text) : null) as T;
  throw new ApiError(answer.status, faultOf(answer.status, text));
}

// Characters that change the direction of a text: with them a name could look like another one. The page only shows what
// it reads, and sends nothing of it back.
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;
const MAY_HAVE_DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]|\\u20(2[a-e]|6[6-9])/i;

/** The value of a JSON text, with a visible character for each that changes the direction of a text. */
export function parsed(text: string): ReturnType<typeof JSON.parse> {
  if (!MAY_HAVE_DIRECTIONS.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value) => (typeof value === "string" ? value.replace(DIRECTIONS, "\ufffd") : value));
}

/** What a refusal says, whether it comes from the API, from the proxy or from a gateway between them. */
export function faultOf(status: number, text: string): Fault {
  try {
    const body = parsed(text);
    const fault = body.error ?? body;
    if (typeof fault.message === "string") return { code: `http_${status}`, ...fault };
  } catch {
    // no JSON: a page of a gateway
  }
  if (status === 401)
    return { code: "token", message: "this page belongs to an earlier start", hint: "run `sluice console` again" };
  return { code: `http_${status}`, message: `the API answered with HTTP ${status}`, hint: null };
}

/** A path of the API with its parameters filled in. */
export function fill(path: string, params: Record<string, string>): string {
  return path.replace(/{(\w+)}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
}

export function get<Path extends PathOf<"GET">>(
  path: Path,
  params: Record<string, string>,
  request?: Request,
): Promise<Answers[`GET ${Path}`]> {
  return send("GET", fill(path, params), request);
}

export function post<Path extends PathOf<"POST">>(
  path: Path,
  params: Record<string, string>,
  request?: Request,
): Promise<Answers[`POST ${Path}`]> {
  return send("POST", fill(path, params), request);
}
