// Days and instants of forms, as ISO texts: the fields of browsers write them in the order of the reader's language.

import { type InputHTMLAttributes, useState } from "react";

type Rest = Omit<InputHTMLAttributes<HTMLInputElement>, "value" | "onChange" | "type">;

interface FieldProps extends Rest {
  value: string;
  /** Called with a whole text that is valid, and with an empty one. */
  take: (text: string) => void;
}

const isDay = (text: string) => {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00:00Z`) : null;
  return at !== null && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
};
const WALL = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)$/;
const isWall = (text: string) => {
  const [, day = "", time = ""] = WALL.exec(text) ?? [];
  return isDay(day) && !Number.isNaN(Date.parse(`${day}T${time}Z`));
};

function Field({ value, take, check, expected, hint, ...rest }: FieldProps & Expected) {
  const [typed, setTyped] = useState<string | null>(null);
  const wrong = typed !== null && typed !== "" && !check(typed.trim());
  return (
    <>
      <input
        {...rest}
        type="text"
        inputMode="numeric"
        className="moment"
        placeholder={hint ?? expected}
        spellCheck={false}
        aria-invalid={wrong || undefined}
        title={wrong ? `expected a text such as ${expected}` : rest.title}
        value={typed ?? value.replace("T", " ")}
        onChange={(event) => {
          const text = event.target.value;
          setTyped(text);
          if (text === "" || check(text.trim())) take(text.trim());
        }}
        onBlur={() => !wrong && setTyped(null)}
      />
      {wrong && <small className="wait">such as {expected}</small>}
    </>
  );
}

type Check = (text: string) => boolean;

interface Expected {
  check: Check;
  expected: string;
  /** What stands in the empty field. */
  hint?: string;
}

/** A day: `2026-11-20`. */
export function DayField(props: FieldProps) {
  return <Field {...props} check={isDay} expected="2026-11-20" hint="day: 2026-11-20" />;
}

/** A wall time: `2026-11-20 07:00`. */
export function WallField(props: FieldProps) {
  return <Field {...props} check={isWall} expected="2026-11-20 07:00" />;
}
