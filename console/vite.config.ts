import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// `sluice console` serves the build with `default-src 'self'`: nothing may be inlined, and no preload polyfill is needed.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../sluice/console/static",
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
  },
  worker: { format: "es" },
  server: {
    proxy: Object.fromEntries(
      ["/v1", "/console.json"].map((path) => [path, process.env.SLUICE_CONSOLE ?? "http://127.0.0.1:8484"]),
    ),
  },
});
