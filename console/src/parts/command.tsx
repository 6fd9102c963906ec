import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { tell } from "../frame/settings";

/** Put a text on the clipboard. */
export async function copy(text: string): Promise<void> {
  await navigator.clipboard.writeText(text);
}

/** Copy a command, and say so: what the key `c` does. */
export async function copyCommand(text: string): Promise<void> {
  await copy(text);
  tell("The command is copied");
}

/** A command of the command line, with a button that copies it. */
export function Command({ text, shown = text }: { text: string; shown?: string }) {
  const [copied, setCopied] = useState(false);
  const act = async () => {
    await copy(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <span className="command">
      <code title={shown}>
        <span className="prompt" aria-hidden="true">
          ${" "}
        </span>
        {shown}
      </code>
      <button
        type="button"
        className="icon-button"
        onClick={act}
        aria-label={copied ? "Copied" : `Copy the command ${shown}`}
        title="Copy"
      >
        {copied ? <Check size={14} /> : <Copy size={14} />}
      </button>
    </span>
  );
}
