/** The line of a workflow in the report of a day; what has no value is null or left out. */
export interface ReportRow {
  workflow: string;
  runs?: number | null;
  succeeded?: number | null;
  success_rate?: number | null;
  [column: string]: unknown;
}
