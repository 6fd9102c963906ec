import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type FormEvent, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import { Dialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import type { Action, Field } from "../api/actions";
import type { Values } from "../api/commands";
import { about } from "../api/queries";
import { tell } from "../frame/settings";
import { Command } from "./command";
import { Failure } from "./panel";

const Opener = createContext<(action: Action) => void>(() => {});

/** Opens the dialog of an action. The action itself happens only there. */
export const useAct = () => useContext(Opener);

export function ActProvider({ children }: { children: ReactNode }) {
  const [action, setAction] = useState<Action | null>(null);
  return (
    <Opener.Provider value={setAction}>
      {children}
      {action && <ActDialog key={action.title} action={action} close={() => setAction(null)} />}
    </Opener.Provider>
  );
}

/** A dialog over the page, that ends with Escape and gives the focus back. */
export function Sheet({
  title,
  close,
  children,
  wide = false,
}: {
  title: string;
  close: () => void;
  children: ReactNode;
  wide?: boolean;
}) {
  return (
    <ModalOverlay className="overlay" isOpen isDismissable onOpenChange={(open) => open || close()}>
      <Modal className={wide ? "modal wide" : "modal"}>
        <Dialog className="dialog">
          <Heading slot="title">{title}</Heading>
          {children}
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

function ActDialog({ action, close }: { action: Action; close: () => void }) {
  const initial = useMemo(
    () => Object.fromEntries((action.fields ?? []).map((field) => [field.name, field.initial ?? ""])),
    [action],
  );
  const [values, setValues] = useState<Values>(initial);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [key] = useState(() => crypto.randomUUID());
  const readOnly = useReadOnly();
  const queries = useQueryClient();
  // A dialog that a key has opened takes text at once.
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>("input[type=text], textarea")?.focus(), []);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const { text, to } = action.done((await action.send(values, key)) as never);
      tell(text, { to });
      close();
      queries.invalidateQueries();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Sheet title={action.title} close={close}>
      <form onSubmit={submit} ref={form}>
        <p className="effect">{action.effect}</p>
        {action.fields?.map((field) => (
          <FormField
            key={field.name}
            field={field}
            value={values[field.name] ?? ""}
            set={(value) => setValues({ ...values, [field.name]: value })}
          />
        ))}
        <Command text={action.command(values)} />
        {error !== null && <Failure error={error} />}
        <ReadOnlyNote>copy the command instead</ReadOnlyNote>
        <footer>
          <button type="button" className="button" onClick={close}>
            Leave
          </button>
          <button
            type="submit"
            className={action.danger ? "button danger" : "button primary"}
            disabled={busy || readOnly}
          >
            {busy ? "Sending…" : action.label}
          </button>
        </footer>
      </form>
    </Sheet>
  );
}

export function useReadOnly(): boolean {
  return useQuery(about).data?.read_only ?? false;
}

/** Says, in a console that only reads, what can be done here. */
export function ReadOnlyNote({ children }: { children: ReactNode }) {
  return useReadOnly() ? <p className="faint after">This console was started with --read-only: {children}.</p> : null;
}

export function FormField({ field, value, set }: { field: Field; value: string; set: (value: string) => void }) {
  if (field.kind === "check") {
    return (
      <label className="field check">
        <input type="checkbox" checked={value === "true"} onChange={(event) => set(String(event.target.checked))} />
        {field.label}
      </label>
    );
  }
  return (
    <label className="field">
      <span>{field.label}</span>
      {field.kind === "choice" ? (
        <select value={value} onChange={(event) => set(event.target.value)}>
          {field.choices?.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      ) : field.kind === "pairs" ? (
        <textarea
          rows={3}
          value={value}
          placeholder={field.hint}
          spellCheck={false}
          onChange={(event) => set(event.target.value)}
        />
      ) : (
        <input
          type={field.kind === "instant" ? "datetime-local" : "text"}
          value={value}
          placeholder={field.hint}
          required={field.required}
          spellCheck={false}
          onChange={(event) => set(event.target.value)}
        />
      )}
    </label>
  );
}

/** A button that opens the dialog of an action. */
export function ActButton({
  action,
  small = false,
  children,
}: {
  action: Action;
  small?: boolean;
  children?: ReactNode;
}) {
  const open = useAct();
  const readOnly = useReadOnly();
  return (
    <button
      type="button"
      className={`button ${small ? "small" : ""} ${readOnly ? "faint" : action.danger ? "danger-text" : ""}`}
      title={readOnly ? "Read only: shows the command" : undefined}
      onClick={() => open(action)}
    >
      {children ?? action.label}
    </button>
  );
}
