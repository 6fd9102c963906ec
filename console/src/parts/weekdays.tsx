const NAMES = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];

/** The names of the rows of a calendar of weeks, from Monday on; the style shows each other one. */
export function WeekdayNames() {
  return (
    <div className="calendar-names" aria-hidden="true">
      {NAMES.map((day) => (
        <span key={day}>{day}</span>
      ))}
    </div>
  );
}
