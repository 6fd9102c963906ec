import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { takeToken } from "./api/client";
import { client } from "./api/queries";
import { askEarly } from "./frame/early";
import { applyTheme } from "./frame/settings";
import { parseSearch, readSearch } from "./lib/search";
import { router } from "./router";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/views.css";

takeToken();
askEarly(location.pathname, readSearch(parseSearch(location.search.slice(1))));
applyTheme();
// Safari has no Temporal yet; the other browsers load nothing.
if (!("Temporal" in globalThis)) await import("temporal-polyfill/global");

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
