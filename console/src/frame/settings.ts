// What belongs to the reader and not to the address: the theme, and the present instant that all ages share.

import { useSyncExternalStore } from "react";

export type Theme = "auto" | "light" | "dark";
const THEMES: readonly Theme[] = ["auto", "light", "dark"];
const KEY = "sluice-theme";

type Listener = () => void;

function store<T>(first: T) {
  let value = first;
  const listeners = new Set<Listener>();
  return {
    get: () => value,
    set: (next: T) => {
      value = next;
      for (const listener of listeners) listener();
    },
    subscribe: (listener: Listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

const stored = localStorage.getItem(KEY) as Theme | null;
const theme = store<Theme>(stored && THEMES.includes(stored) ? stored : "auto");

export function applyTheme(): void {
  document.documentElement.dataset.theme = theme.get();
}

export function nextTheme(): void {
  const next = THEMES[(THEMES.indexOf(theme.get()) + 1) % THEMES.length] ?? "auto";
  localStorage.setItem(KEY, next);
  theme.set(next);
  applyTheme();
}

const dark = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");

/** Whether the system is dark now: the theme `auto` follows it. */
export const useSystemDark = (): boolean =>
  useSyncExternalStore(
    (listener) => {
      dark?.addEventListener("change", listener);
      return () => dark?.removeEventListener("change", listener);
    },
    () => dark?.matches ?? false,
  );

export const useTheme = (): Theme => useSyncExternalStore(theme.subscribe, theme.get);

const clock = store(Date.now());
setInterval(() => document.hidden || clock.set(Date.now()), 1000);

/** The present instant in ms; it moves once a second while the page is visible. */
export const useNow = (): number => useSyncExternalStore(clock.subscribe, clock.get);

/** The present instant by steps of so many ms, for what need not move each second. */
export function useNowBy(step: number): number {
  return useSyncExternalStore(clock.subscribe, () => Math.floor(clock.get() / step) * step);
}

export interface Notice {
  id: number;
  text: string;
  bad: boolean;
  to?: string;
}

const notices = store<Notice[]>([]);
let notice = 0;

/** Tell the result of an action for some seconds. */
export function tell(text: string, { bad = false, to }: { bad?: boolean; to?: string } = {}): void {
  const mine = { id: ++notice, text, bad, to };
  notices.set([...notices.get(), mine]);
  setTimeout(() => notices.set(notices.get().filter((other) => other.id !== mine.id)), bad ? 12_000 : 6_000);
}

export const useNotices = (): Notice[] => useSyncExternalStore(notices.subscribe, notices.get);
