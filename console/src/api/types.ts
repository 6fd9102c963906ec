// Generated from the OpenAPI document of the API by `python -m infra.console_types`. Do not edit.

export interface AbsentTrigger {
  type: "absent";
  of: PartitionTrigger | SizeTrigger | ProgramStatusTrigger | EventTrigger | CloudWatchAlarmTrigger;
  within?: string | null;
  deadline?: string | null;
  period?: "today" | "yesterday" | "current" | "last" | null;
  after?: string | null;
  zone?: string | null;
  days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
}

export interface Accepted {
  job_id: string;
  state: string | null;
  reason: string;
  code: string | null;
}

export interface AcceptedEvent {
  id: string;
  type: string;
  event_id: string;
  source?: string;
}

export interface AcceptedEvents {
  accepted: AcceptedEvent[];
}

export interface Access {
  members: Member[];
}

export interface ActiveEntry {
  job_id: string;
  entry: unknown;
  state: string;
}

export interface AllTrigger {
  type: "all";
  triggers: (TimeTrigger | PartitionTrigger | SizeTrigger | ProgramStatusTrigger | EventTrigger | CloudWatchAlarmTrigger | QuietTrigger | ElapsedTrigger | AbsentTrigger | AllTrigger | AnyOfTrigger | AtLeastTrigger)[];
  within?: string | null;
}

export interface Allowed {
  execution_roles?: string[] | null;
  applications?: string[] | null;
  entry_points?: string[] | null;
  spark?: string[] | null;
  queues?: string[] | null;
  topics?: string[] | null;
  functions?: string[] | null;
  buses?: string[] | null;
  state_machines?: string[] | null;
  engines?: string[] | null;
  actions?: string[] | null;
  hosts?: string[] | null;
  secrets?: string[] | null;
  buckets?: string[] | null;
  metrics?: string[] | null;
  alarms?: string[] | null;
  target_role?: string | null;
}

export interface AnyOfTrigger {
  type: "any";
  triggers: (TimeTrigger | PartitionTrigger | SizeTrigger | ProgramStatusTrigger | EventTrigger | CloudWatchAlarmTrigger | QuietTrigger | ElapsedTrigger | AbsentTrigger | AllTrigger | AnyOfTrigger | AtLeastTrigger)[];
}

export interface App {
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  namespace?: string | null;
  app?: string | null;
  default_target?: EmrServerlessTarget | WorkerTarget | SqsTarget | SnsTarget | HttpTarget | LambdaTarget | EventBusTarget | StepFunctionsTarget | EcsTarget | BatchTarget | GlueTarget | AthenaTarget | EmrEksTarget | AwsApiTarget | null;
  data_bucket?: string | null;
  datasets?: Record<string, Dataset>;
  policies?: Record<string, Policy>;
  pools?: Record<string, Pool>;
  calendars?: Record<string, HolidayCalendar>;
  workflows?: Record<string, Workflow>;
  schedules?: Record<string, NewSchedule>;
  dags?: Record<string, NewDag>;
}

export interface Approval {
  type: "approval";
  role?: string | null;
  people?: string[];
  timeout?: string | null;
  on_unmet?: "wait";
}

export interface ApprovalsNow {
  count: number;
  at_least: boolean;
  schedules: ApprovalsOf[];
}

export interface ApprovalsOf {
  schedule: string;
  count: number;
  late: number;
  oldest: string;
  jobs: Job[];
}

export interface Around {
  from: string;
  to?: "period" | "before";
}

export interface AtLeastTrigger {
  type: "at_least";
  count: number;
  triggers: (TimeTrigger | PartitionTrigger | SizeTrigger | ProgramStatusTrigger | EventTrigger | CloudWatchAlarmTrigger | QuietTrigger | ElapsedTrigger | AbsentTrigger | AllTrigger | AnyOfTrigger | AtLeastTrigger)[];
  within?: string | null;
}

export interface AthenaTarget {
  type: "athena";
  query: string;
  parameters?: (string | boolean | number)[];
  workgroup?: string;
  database?: string | null;
  catalog?: string | null;
  output?: string | null;
  result_reuse?: string | null;
  poll_every?: string | null;
}

export interface AuditRecord {
  at: string;
  namespace: string;
  operation: string;
  outcome: "changed" | "refused" | "observed" | "begun";
  kind: string;
  name: string;
  by: string | null;
  account: string | null;
  session: string | null;
  unique_id: string | null;
  source: string | null;
  request_id: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  reason: string | null;
  count: number;
}

export interface AwsApiTarget {
  type: "aws_api";
  service: string;
  action: string;
  input?: Record<string, unknown>;
  result?: boolean;
}

export interface Backfill {
  from?: string | null;
  to?: string | null;
  partitions?: PartitionRange | null;
  only?: "all" | "missing" | "failed";
  concurrency?: number;
  order?: "oldest" | "newest";
  properties?: Record<string, unknown>;
  dry_run?: boolean;
}

export interface Backoff {
  tries?: number;
  growth?: "exponential" | "fixed";
  delay?: string;
  max_delay?: string;
}

export interface BatchTarget {
  type: "batch";
  job_queue: string;
  job_definition: string;
  command?: string[];
  environment?: Record<string, string>;
  parameters?: Record<string, string>;
  vcpus?: number | null;
  memory_mib?: number | null;
  share_identifier?: string | null;
  scheduling_priority?: number | null;
  poll_every?: string | null;
}

export interface BegunDag {
  dag: string;
  run_id: string;
}

export interface BegunUpload {
  upload: string;
  url: string;
  max_bytes: number;
  expires_at: string;
}

export interface Billed {
  cost_usd: number | null;
}

export interface Bulk {
  action: "enable" | "disable" | "pause" | "resume";
  names?: string[] | null;
  tag?: string | null;
  workflow?: string | null;
  state?: "enabled" | "hold" | "backlog" | "drain" | "completed" | "disabled" | null;
  all?: boolean;
  mode?: "hold" | "backlog" | "drain" | null;
  timeouts?: "count" | "stop" | null;
  dry_run?: boolean;
}

export interface BulkChange {
  changed: string[];
  unchanged: string[];
  failed: FailedChange[];
  dry_run: boolean;
}

export interface Calendar {
  type: "calendar";
  only?: (string | Record<string, string>)[];
  excluding?: (string | Record<string, string>)[];
  zone?: string | null;
  on_unmet?: "abort" | "wait";
}

export interface CatchUp {
  mode?: "all" | "latest" | "none";
  within?: string;
}

export interface Change {
  name: string;
  kind: string;
  did: string;
  version: number;
}

export interface ChangeOfAccess {
  name: string;
  kind: string;
  did: string;
  version: number;
  warning?: string | null;
}

export interface Claim {
  worker: string;
  capacity?: number;
  wait?: number;
}

export interface CloudEvent {
  specversion: "1.0";
  id: string;
  source: string;
  type: string;
  subject?: string | null;
  time?: string | null;
  datacontenttype?: string | null;
  dataschema?: string | null;
  data?: unknown;
  data_base64?: string | null;
}

export interface CloudWatchAlarmTrigger {
  type: "cloudwatch_alarm";
  alarm: string;
  state?: "ALARM" | "OK" | "INSUFFICIENT_DATA" | ("ALARM" | "OK" | "INSUFFICIENT_DATA")[];
  count?: number;
}

export interface Concurrency {
  type: "concurrency";
  max: number;
  group?: string | null;
  on_unmet?: "abort" | "wait" | "cancel_other";
}

export interface DagConcurrency {
  max: number;
  on_unmet?: "abort" | "wait" | "cancel_other";
}

export interface Dataset {
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  bucket: string;
  prefix: string;
  format?: "files" | "iceberg";
  keys?: string[];
  ready?: Readiness;
  count_overwrites?: boolean;
  rewritten?: "again" | "ignore";
  period?: PeriodRule | null;
  values?: Record<string, string[] | "seen_last">;
  fresh?: string | null;
  priority?: number | null;
  operations?: ("append" | "overwrite" | "delete" | "replace")[];
  glue_table?: string | null;
  single_writer?: boolean;
}

export interface DatasetFresh {
  type: "dataset_fresh";
  dataset: string;
  within?: string | null;
  on_unmet: "abort" | "wait";
}

export interface DayOfSchedule {
  day: string;
  counts: Record<string, number>;
}

export interface DaysOfSchedule {
  from: string;
  schedule: string;
  zone: string;
  to: string;
  days: DayOfSchedule[];
  at_least: boolean;
  complete_from: string;
}

export interface DeadLetter {
  run_id: string;
  attempt: number;
  schedule: string;
  workflow: string;
  target: string;
  reason: string;
  code: string | null;
  tries: number;
  size: number;
  nominal_at: string | null;
  first_try_at: string | null;
  failed_at: string;
}

export interface Deadline {
  start_within?: string | null;
  end_within?: string | null;
  from?: "nominal" | "data";
}

export interface Delay {
  type: "delay";
  after: string;
  since?: "created" | "met";
  on_unmet?: "abort" | "wait";
}

export interface Delivery {
  tries?: number;
  delay?: string;
  backoff?: Backoff | null;
  records?: "fire" | "each";
}

export interface Deployment {
  name: string;
  created: string[];
  replaced: string[];
  deleted: string[];
  kept: string[];
  untouched: string[];
  changes?: Record<string, unknown> | null;
  effects: Record<string, EffectOfPut>;
  notes?: string[] | null;
}

export interface DroppedJob {
  job_id: string;
  kind: "gathering" | "fire" | "detached" | "run_now" | "retry" | "redrive" | "backfill";
  name: string;
}

export interface DryRun {
  events: (GivenTime | GivenPartition | GivenSize | GivenStatus | GivenEvent | GivenAlarm)[];
}

export interface DryRunOfTrigger {
  steps: Step[];
  fires: number;
  left: OpenMatch[];
  why: string;
}

export interface Each {
  of: string;
  path?: string | null;
  max?: number;
  concurrency?: number | null;
}

export interface EcsTarget {
  type: "ecs";
  cluster: string;
  task_definition: string;
  container: string;
  command?: string[];
  environment?: Record<string, unknown>;
  subnets: string[];
  security_groups?: string[];
  assign_public_ip?: boolean;
  capacity_provider?: "FARGATE" | "FARGATE_SPOT" | null;
  platform_version?: string | null;
  poll_every?: string | null;
}

export interface Edge {
  from: string | string[];
  to: string | string[];
  on?: ("COMPLETED" | "FAILED" | "KILLED")[];
  within?: string | null;
  if?: Record<string, unknown> | null;
}

export interface EdgeOfGraph {
  from: string;
  to: string;
  kind: "runs" | "counts" | "reads" | "produces";
  text: string;
}

export interface EdgeOfLineage {
  from: string;
  to: string;
  text: string;
}

export interface EffectOfPut {
  code: "begins" | "described" | "carried" | "goes_on" | "begins_again" | "ended" | "idle" | "stops" | "deleted";
  text: string;
  dropped: number;
  jobs: DroppedJob[];
  backfills: string[];
  spans: string[];
  prepared: number;
  dag_runs: string[];
  more: boolean;
  stops: Stop[];
}

export interface EffectiveQuotas {
  schedules: number | null;
  fires_per_second: number | null;
  documents: number | null;
  requests_per_second: number | null;
  waiting_jobs: number | null;
}

export interface ElapsedTrigger {
  type: "elapsed";
  after: string;
}

export interface Element {
  index: number;
  value: unknown;
  state: string;
  why: string;
  run_id: string | null;
  attempt: number | null;
  started_at: string | null;
  ended_at: string | null;
}

export interface ElementOfRun {
  index: number;
  count: number;
  value: unknown;
}

export interface Elements {
  count: number;
  succeeded: number;
  failed: number;
  running?: number;
  waiting?: number;
}

export interface EmrEksTarget {
  type: "emr_eks";
  virtual_cluster: string;
  execution_role_arn: string;
  release: string;
  entry_point: string;
  arguments?: string[];
  py_files?: string[];
  spark?: Record<string, string>;
  poll_every?: string | null;
}

export interface EmrServerlessTarget {
  type: "emr_serverless";
  entry_point: string;
  arguments?: string[];
  py_files?: string[];
  spark?: Record<string, string>;
  application_id?: string | null;
  execution_role_arn?: string | null;
  poll_every?: string | null;
}

export interface EndedWork {
  id: string;
  kind: string;
  schedule: string;
  reason: string;
  code: string | null;
  at: string;
  count: number;
}

export interface EntryNow {
  entry: unknown;
  state: "missing" | "waiting" | "running" | "succeeded" | "failed";
  runs: boolean;
  have?: number;
  need?: number;
  why: string | null;
  code: string | null;
  run_id: string | null;
}

export interface Refusal {
  error: {
    code: string;
    message: string;
    field: string | null;
    hint: string | null;
    problems?: Problem[];
  };
}

export interface ErrorOfChange {
  code: string;
  message: string;
  field: string | null;
  hint: string | null;
}

export interface ErrorOfDeployment {
  code: string;
  message: string;
  field: string | null;
  hint: string | null;
}

export interface EventBusTarget {
  type: "event_bus";
  format?: "cloudevents" | null;
  event_type?: string | null;
  bus: string;
  source?: string;
  detail_type?: string;
}

export interface EventInFire {
  id: string;
  index: number;
  due_at: string | null;
  state: "WAITING" | "SENT" | "RETRYING" | "FAILED" | "DROPPED" | "UNKNOWN";
  reason: string;
  code: string | null;
}

export interface EventOfRun {
  kind: string;
  id: string;
  instant: number;
}

export interface EventTrigger {
  type: "event";
  event: string;
  namespace?: string | null;
  pattern?: Record<string, unknown> | null;
  count?: number;
}

export interface Events {
  events: NewEvent[];
}

export interface FailedChange {
  name: string;
  error: ErrorOfChange;
}

export interface FailedRun {
  run_id: string;
  partition: Record<string, string> | null;
  reason: string;
  code: string | null;
}

export interface Fire {
  schedule: string;
  nominal_at: string;
  due_at: string;
  skipped: boolean;
  state: "enabled" | "hold" | "backlog" | "drain" | "completed" | "disabled" | "deleted";
}

export interface FireRange {
  schedule: string;
  from: string;
  to: string;
}

export interface Fires {
  from: string;
  to: string;
  at_least: boolean;
  complete_to: string;
  items: Fire[];
}

export interface FiresOfReprocess {
  from?: string | null;
  schedule: string;
  to?: string | null;
}

export interface Fresh {
  type: "fresh";
  workflows: string[];
  within: string;
  on_unmet: "abort" | "wait";
}

export interface Freshness {
  late: boolean;
  fresh_until: string;
  newest: Record<string, string> | null;
  newest_at: string | null;
}

export interface GivenAlarm {
  at?: string | null;
  type: "cloudwatch_alarm";
  alarm: string;
  state?: "ALARM" | "OK" | "INSUFFICIENT_DATA";
}

export interface GivenApproval {
  for?: string | null;
  by: string;
  at: string;
}

export interface GivenEvent {
  at?: string | null;
  type: "event";
  event: string;
  namespace?: string | null;
  payload?: Record<string, unknown>;
}

export interface GivenPartition {
  at?: string | null;
  type: "partition" | "snapshot";
  dataset: string;
  partition?: Record<string, string>;
}

export interface GivenPrefix {
  bucket: string;
  prefix: string;
  nested?: boolean;
}

export interface GivenSize {
  at?: string | null;
  type: "size";
  dataset: string;
  bytes: number | string;
  partition?: Record<string, string>;
}

export interface GivenStatus {
  at?: string | null;
  type: "program_status";
  workflow: string;
  status?: "STARTED" | "COMPLETED" | "FAILED" | "KILLED";
  schedule?: string | null;
  version?: number | null;
  partition?: Record<string, string>;
}

export interface GivenTime {
  at?: string | null;
  type: "time" | "elapsed" | "absent";
}

export interface Glance {
  schedules: string[];
}

export interface GlanceAtSchedule {
  schedule: string;
  state: "enabled" | "hold" | "backlog" | "drain" | "completed" | "disabled" | "deleted";
  why: string;
  next_fire: string | null;
  waiting: number;
  at_least: boolean;
  last: LastRun[];
}

export interface Glances {
  items: GlanceAtSchedule[];
  gone: string[];
}

export interface GlueTarget {
  type: "glue";
  job: string;
  arguments?: Record<string, string>;
  worker_type?: string | null;
  workers?: number | null;
  execution_class?: "STANDARD" | "FLEX" | null;
  poll_every?: string | null;
}

export interface Grant {
  to: string;
  run?: string[];
  follow?: string[];
  context?: string[];
  datasets?: string[];
  events?: string[];
  pools?: string[];
  policies?: string[];
}

export interface Grants {
  grants: Grant[];
}

export interface Graph {
  around: string | null;
  nodes: NodeOfGraph[];
  edges: EdgeOfGraph[];
  at_least: boolean;
}

export interface Health {
  status: string;
  lake?: string | null;
  control?: string | null;
}

export interface Heartbeat {
  metrics?: Record<string, number | string | boolean>;
  worker: string;
  message?: string;
}

export interface HeldJobs {
  kind: "limit" | "window" | "approval" | "data" | "clock" | "pause" | "upstream" | "probe" | "grant" | "condition";
  name: string;
  of: string;
  changes_at: string | null;
  why: string;
  count: number;
  oldest: string;
  jobs: Job[];
}

export interface Hold {
  kind: "limit" | "window" | "approval" | "data" | "clock" | "pause" | "upstream" | "probe" | "grant" | "condition";
  name: string;
  of: string;
  changes_at: string | null;
}

export interface Holder {
  run_id: string;
  attempt: number;
  schedule: string;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED";
  since: string | null;
}

export interface HolidayCalendar {
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  days: (string | Record<string, string>)[];
}

export interface HttpProbe {
  type: "http";
  url: string | SecretUrl;
  headers?: Record<string, string | SecretReference>;
  timeout?: string;
  secret?: string | SecretReference | null;
}

export interface HttpTarget {
  type: "http";
  format?: "cloudevents" | "cloudevents-binary" | null;
  event_type?: string | null;
  url: string | SecretUrl;
  method?: "POST" | "PUT" | "PATCH" | "GET" | "DELETE";
  headers?: Record<string, string | SecretReference>;
  timeout?: string;
  secret?: string | SecretReference | null;
  body_secrets?: Record<string, unknown> | null;
}

export interface IgnoredObject {
  key: string;
  at: string;
  why: string;
  code: "no_folders" | "invalid_value" | "no_period" | "other_folder";
  of: string;
}

export interface Incomplete {
  allow?: number | null;
  after?: string | null;
}

export interface Job {
  job_id: string;
  schedule: string;
  kind: "gathering" | "fire" | "detached" | "run_now" | "retry" | "redrive" | "backfill";
  state: "PENDING_TRIGGER" | "PENDING_CONSTRAINTS" | "PENDING_LAUNCH";
  reason: string;
  code: string | null;
  created_at: string;
  due_at: string | null;
  nominal_at: string | null;
  met_at: string | null;
  wake_at: string | null;
  queued_in: string | null;
  holds: string[];
  correlation: Record<string, string> | null;
  dag: PartOfDag | null;
  attempt: number;
  inherited_priority: string | null;
  approvals: GivenApproval[];
  backfill: string | null;
  progress: Record<string, number>;
  requested_by: string | null;
  waits_for: Hold[];
  queue: PlaceInQueue | null;
  count: number;
  fire: string | null;
  spread: PlaceInFire | null;
}

export interface JobOfPartition {
  job_id: string;
  schedule: string;
  state: "PENDING_TRIGGER" | "PENDING_CONSTRAINTS" | "PENDING_LAUNCH";
  reason: string;
  code: string | null;
}

export interface LambdaProbe {
  type: "lambda";
  function: string;
}

export interface LambdaTarget {
  type: "lambda";
  format?: "cloudevents" | null;
  event_type?: string | null;
  function: string;
  wait?: boolean;
}

export interface Last {
  periods: number;
  ending?: "period" | "before" | "after";
}

export interface LastFailure {
  run_id: string;
  attempt: number;
  attempts: number;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED";
  partition: Record<string, string> | null;
  node: string | null;
  dag_run: string | null;
  error: string;
  code: string | null;
  at: string | null;
  next: string;
}

export interface LastRun {
  run_id: string;
  attempt: number;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED";
  at: string;
  count: number;
}

export interface LatePartition {
  schedule: string;
  reason: string;
  at: string;
}

export interface LaterDeployment {
  name: string;
  deployment: string;
  state: "RUNNING" | "DONE" | "FAILED" | "SUPERSEDED";
  counts: Record<string, number>;
  error: ErrorOfDeployment | null;
  superseded_by: string | null;
  left_alone: string[];
  created_at: string;
  created_by: string;
  ended_at: string | null;
}

export interface Lease {
  lease: string;
  run_id: string;
  attempt: number;
  schedule: string;
  workflow: string;
  arguments: string[];
  properties: Record<string, unknown>;
  priority: number;
  context: Record<string, unknown>;
  expires_at: string;
  heartbeat_seconds: number;
}

export interface Leases {
  leases: Lease[];
  wait: number;
  retry_after: number;
}

export interface Limit {
  name: string;
  kind: string;
  of: string;
  rule: string | null;
  in_use: number | null;
  maximum: number | null;
  unit: string;
  waiting: number;
  next_at: string | null;
  holders: Holder[] | null;
  waiters: Waiter[] | null;
  at_least: boolean;
}

export interface Lineage {
  run_id: string;
  nodes: NodeOfLineage[];
  edges: EdgeOfLineage[];
  at_least: boolean;
}

export interface LineageOfRun {
  namespace: string;
  job: string;
  run_id: string;
}

export interface Load {
  type: "load";
  of: Measured;
  below?: number | null;
  at_least?: number | null;
  recheck?: string;
  on_unmet?: "abort" | "wait";
}

export interface Logs {
  run_id: string;
  attempt: number;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED";
  streams: Record<string, string[]>;
  why: string | null;
  exit_code?: number | null;
  reported_at?: string | null;
}

export interface Measured {
  pool?: string | null;
  emr_application?: string | null;
  cloudwatch?: Metric | null;
  subnet?: string | null;
}

export interface Member {
  member: string;
  roles: ("viewer" | "operator" | "author" | "admin" | "producer" | "worker" | "approver")[];
  events?: string[];
  datasets?: string[];
  pools?: string[];
}

export interface Message {
  data?: unknown;
  data_base64?: string | null;
  content_type?: string | null;
  data_uri?: string | null;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  schedule?: string | Record<string, unknown> | null;
  due_time?: string | null;
  repeats?: number | null;
  ttl?: string | null;
  zone?: string;
  target?: EmrServerlessTarget | WorkerTarget | SqsTarget | SnsTarget | HttpTarget | LambdaTarget | EventBusTarget | StepFunctionsTarget | EcsTarget | BatchTarget | GlueTarget | AthenaTarget | EmrEksTarget | AwsApiTarget | null;
  workflow?: string | null;
}

export interface Metric {
  namespace: string;
  metric: string;
  dimensions?: Record<string, string>;
  statistic?: "Average" | "Sum" | "Minimum" | "Maximum" | "SampleCount";
  period?: 10 | 30 | 60 | 300 | 900 | 3600;
}

export interface Namespace {
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
}

export interface NewDag {
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  trigger: TimeTrigger | PartitionTrigger | SizeTrigger | ProgramStatusTrigger | EventTrigger | CloudWatchAlarmTrigger | QuietTrigger | ElapsedTrigger | AbsentTrigger | AllTrigger | AnyOfTrigger | AtLeastTrigger;
  by?: string[];
  per?: Per | null;
  incomplete?: Incomplete | null;
  late?: "ignore" | "again";
  timeout?: Timeout | "never";
  zone?: string;
  catch_up?: CatchUp;
  concurrency?: DagConcurrency | null;
  run_timeout?: string | null;
  deadline?: Deadline | null;
  notify?: Notify[];
  nodes: Record<string, Node>;
  edges?: Edge[];
  enabled?: boolean | null;
}

export interface NewEvent {
  type: string;
  timestamp?: string | null;
  payload?: Record<string, unknown>;
  id?: string | null;
}

export interface NewPartition {
  partition: Record<string, string | number>;
}

export interface NewSchedule {
  data?: unknown;
  data_base64?: string | null;
  content_type?: string | null;
  data_uri?: string | null;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  workflow: string;
  trigger: TimeTrigger | PartitionTrigger | SizeTrigger | ProgramStatusTrigger | EventTrigger | CloudWatchAlarmTrigger | QuietTrigger | ElapsedTrigger | AbsentTrigger | AllTrigger | AnyOfTrigger | AtLeastTrigger;
  by?: string[];
  values?: Record<string, string[]>;
  per?: Per | null;
  incomplete?: Incomplete | null;
  late?: "ignore" | "again";
  constraints?: (Concurrency | Delay | TimeWindow | SinceLastRun | Rate | Fresh | Load | Approval | Probe | Calendar | DatasetFresh)[];
  properties?: Record<string, unknown>;
  priority?: number | null;
  timeout?: Timeout | "never";
  zone?: string;
  coalesce?: boolean;
  pause_after_failures?: number | null;
  policy?: string | null;
  retries?: Retries | null;
  pool?: string | null;
  slots?: number | null;
  resources?: Resources | null;
  deadline?: Deadline | null;
  expected?: string | null;
  run_timeout?: string | null;
  catch_up?: CatchUp;
  ttl?: string | null;
  when_done?: "keep" | "delete";
  spread?: Spread | null;
  notify?: Notify[];
  enabled?: boolean | null;
  on_update?: "drop" | "carry";
}

export interface NewStop {
  tag?: string | null;
  dry_run?: boolean;
  reason: string;
  timeouts?: "count" | "stop";
}

export interface Newest {
  partition: Record<string, string>;
  at: string;
}

export interface NextPeriod {
  start: string;
  end: string;
  zone: string;
  label: string;
  need: number | null;
  complete_from: string;
}

export interface Node {
  workflow: string;
  properties?: Record<string, unknown>;
  constraints?: (Concurrency | Delay | TimeWindow | SinceLastRun | Rate | Fresh | Load | Approval | Probe | Calendar | DatasetFresh)[];
  priority?: number | null;
  timeout?: Timeout | "never";
  when?: "all_succeeded" | "none_failed" | "all_done" | "one_succeeded" | "one_failed" | "always";
  each?: Each | null;
}

export interface NodeOfGraph {
  id: string;
  kind: "schedule" | "workflow" | "dataset";
  name: string;
  depth: number | null;
  state: "enabled" | "hold" | "backlog" | "drain" | "completed" | "disabled" | "deleted" | null;
  dag: string | null;
}

export interface NodeOfLineage {
  id: string;
  kind: "run" | "job" | "record" | "partition" | "event" | "fire";
  schedule: string | null;
  workflow: string | null;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED" | "PENDING_TRIGGER" | "PENDING_CONSTRAINTS" | "PENDING_LAUNCH" | "ABORTED" | "DROPPED" | "COALESCED" | "SKIPPED" | "EXPIRED" | "LATE" | null;
  reason: string;
  code: string | null;
  at: string;
  ended_at: string | null;
  depth: number;
}

export interface NotFollowed {
  schedule: string;
  dataset: string;
  workflow: string;
  why: string;
}

export interface Notify {
  on: ("failed" | "aborted" | "missed_start" | "missed_end" | "data_late" | "data_fresh")[];
  to: EmrServerlessTarget | WorkerTarget | SqsTarget | SnsTarget | HttpTarget | LambdaTarget | EventBusTarget | StepFunctionsTarget | EcsTarget | BatchTarget | GlueTarget | AthenaTarget | EmrEksTarget | AwsApiTarget;
  form?: "slack" | "teams" | "pagerduty" | "mail" | null;
  console?: string | null;
  group?: string | null;
  quiet?: QuietHours | null;
}

export interface Now {
  at: string;
  at_least: boolean;
  waiting: WaitingNow;
  approvals: ApprovalsNow;
  running: RunningNow;
  overdue: OverdueNow;
  paused: PausedNow;
  stopped: Stop[];
}

export interface Occurrence {
  at: string;
}

export interface OnePartition {
  dataset: string;
  values: string[];
  partition: Record<string, string>;
  period?: Period | null;
  ready_at: string | null;
  path: string | null;
  made_by: RunOfPartition[];
  waiting: JobOfPartition[];
  runs: RunOfPartition[];
  ended: RecordOfWork[];
  schedules: string[];
  at_least: boolean;
}

export interface OpenApiDocument {
  openapi: string;
  info: Record<string, unknown>;
  paths: Record<string, unknown>;
  components: Record<string, unknown>;
  security: Record<string, unknown>[];
}

export interface OpenMatch {
  why: string;
  changes_at: string | null;
  correlation: Record<string, string> | null;
}

export interface Outcomes {
  runs: number;
  more: boolean;
  since: string | null;
  states: Record<string, number>;
  failed: Run[];
}

export interface OverdueNow {
  count: number;
  at_least: boolean;
  going_on: number;
  items: OverdueWork[];
}

export interface OverdueWork {
  id: string;
  kind: "job" | "run";
  schedule: string;
  why: string;
  by: string;
  count: number;
  goes_on_at: string | null;
}

export interface OwnedPrefix {
  bucket: string;
  prefix: string;
  namespace: string;
  dataset: string | null;
  given: boolean;
}

export interface PartOfDag {
  name: string;
  run_id: string;
  round: number;
  node: string | null;
}

export interface PartOfQueue {
  of: string;
  waiting: number;
  queue: Waiter[];
}

export interface PartOfTrigger {
  type: string;
  text: string;
  need: number;
  have: number;
  met: boolean;
  arrived: string[];
  missing: string[];
  lacks: Record<string, string>[];
  changes_at: string | null;
  leaf: string | null;
  children: PartOfTrigger[];
}

export interface PartitionOfRun {
  dataset: string;
  partition: Record<string, string> | null;
  why: string;
}

export interface PartitionRange {
  dataset?: string | null;
  from?: Record<string, string | number> | null;
  to?: Record<string, string | number> | null;
  values?: (Record<string, string | number>)[] | null;
}

export interface PartitionTrigger {
  type: "partition" | "snapshot";
  dataset: string;
  count?: number;
  of?: "period" | Last | Around | null;
}

export interface Pause {
  mode?: "hold" | "backlog" | "drain";
  timeouts?: "count" | "stop";
}

export interface PausedNow {
  count: number;
  at_least: boolean;
  schedules: PausedSchedule[];
}

export interface PausedSchedule {
  schedule: string;
  state: "enabled" | "hold" | "backlog" | "drain" | "completed" | "disabled" | "deleted";
  since: string;
  reason: string;
  by: string;
}

export interface Per {
  each: "15m" | "20m" | "30m" | "hour" | "2h" | "3h" | "4h" | "6h" | "8h" | "12h" | "day" | "week" | "month" | "quarter" | "year";
  zone?: string | null;
  week_starts?: "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun";
}

export interface Period {
  start: string;
  end: string;
  zone: string;
  label: string;
}

export interface PeriodOfSchedule {
  at: string;
  period: Period | null;
  values: Record<string, string> | null;
  state: "missing" | "waiting" | "running" | "succeeded" | "failed";
  why: string | null;
  code: string | null;
  job_id: string | null;
  runs: string[];
  attempts: number;
  revision: number;
  since: string | null;
  ready_at: string | null;
}

export interface PeriodRule {
  each: "15m" | "20m" | "30m" | "hour" | "2h" | "3h" | "4h" | "6h" | "8h" | "12h" | "day" | "week" | "month" | "quarter" | "year";
  format: string;
  zone?: string;
  week_starts?: "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun";
}

export interface PeriodsByDay {
  schedule: string;
  days: string;
  mixed: Record<string, Record<string, number>>;
  why: string | null;
  complete_from: string;
}

export interface PlaceInFire {
  index: number;
  count: number | null;
}

export interface PlaceInQueue {
  of: string;
  position: number | null;
  waiting: number;
  more_urgent: number;
  since: string;
}

export interface PlanOfBackfill {
  schedule: string;
  dataset?: string | null;
  total: number | null;
  first: unknown[];
  last: unknown[];
  now: Record<string, number>;
  entries: EntryNow[];
}

export interface PlanOfReprocess {
  dataset: string | null;
  run: string | null;
  fires: FiresOfReprocess | null;
  namespace: string;
  partitions: number;
  total: number;
  steps: PlannedStepOfReprocess[];
  not_followed: NotFollowed[];
}

export interface PlannedStepOfReprocess {
  step: number;
  schedule: string;
  workflow: string;
  after: number[];
  why: string;
  registered: boolean;
  total: number;
  first: unknown[];
  last: unknown[];
}

export interface Policy {
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  aging?: string | null;
  max_events: number;
  interval?: string;
  margin?: string | null;
}

export interface Pool {
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  aging?: string | null;
  size: number;
  unit?: "slots" | "vcpu";
  shares?: Record<string, Share>;
}

export interface Preview {
  items: string[];
  due: string[];
  skipped: string[];
  next_cursor: null;
  description: string;
  zone: string;
  fires_per_day: number | null;
  events_per_fire: number;
  periods: NextPeriod[];
}

export interface Probe {
  type: "probe";
  target: LambdaProbe | HttpProbe;
  retry?: string;
  on_unmet?: "abort" | "wait";
}

export interface Problem {
  code: string;
  message: string;
  field: string | null;
  hint: string | null;
}

export interface ProgramStatusTrigger {
  type: "program_status";
  workflow: string;
  schedule?: string | null;
  version?: number | null;
  statuses?: ("STARTED" | "COMPLETED" | "FAILED" | "KILLED")[];
  count?: number;
}

export interface ProposedAllowed {
  name: string;
  refused: RefusedUse[];
  allowed: Allowed;
  left_out: RefusedUse[];
  complete: boolean;
}

export interface QuietHours {
  from: string;
  to: string;
  zone?: string;
  days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
  urgent?: ("failed" | "aborted" | "missed_start" | "missed_end" | "data_late" | "data_fresh")[];
}

export interface QuietTrigger {
  type: "quiet";
  of: PartitionTrigger | SizeTrigger | ProgramStatusTrigger | EventTrigger | CloudWatchAlarmTrigger;
  after: string;
}

export interface Quotas {
  schedules?: number | null;
  fires_per_second?: number | null;
  documents?: number | null;
  requests_per_second?: number | null;
  waiting_jobs?: number | null;
}

export interface Rate {
  type: "rate";
  max: number;
  per: string;
  on_unmet?: "abort" | "wait";
}

export interface Readiness {
  done_flag?: string | null;
  manifest?: string | null;
}

export interface RecordOfWork {
  id: string;
  kind: "ABORTED" | "DROPPED" | "COALESCED" | "SKIPPED" | "EXPIRED" | "LATE";
  schedule: string;
  reason: string;
  code: string | null;
  at: string;
  count: number;
}

export interface Redrive {
  schedule: string;
  limit?: number;
}

export interface Redriven {
  run_id: string;
  attempt: number;
}

export interface RedrivenLetters {
  redriven: string[];
  refused: unknown[];
  more: boolean;
}

export interface Ref {
  text: string;
  kind: "schedule" | "workflow" | "dataset" | "pool" | "policy" | "group" | "backfill" | "run";
  name: string;
}

export interface Refused {
  job_id: string;
  state: "ABORTED";
  reason: string;
  code: string;
}

export interface RefusedUse {
  document: string;
  field: string;
  why: string;
}

export interface Registered {
  dataset: string;
  register: "on_success";
}

export interface RegisteredPartition {
  dataset: string;
  partition: Record<string, string>;
  path: string;
  ready_at: string;
  put_at: string;
  object: string | null;
  snapshot?: Record<string, unknown> | null;
  period?: Period | null;
  late?: LatePartition[];
}

export interface Release {
  worker: string;
  message?: string;
}

export interface Report {
  metrics?: Record<string, number | string | boolean>;
  worker: string;
  state: "succeeded" | "failed";
  exit_code?: number | null;
  message?: string;
  output?: string;
  result?: unknown;
  result_text?: string | null;
}

export interface ReportOfWorkflow {
  namespace: string;
  workflow: string;
}

export interface ReportedEnd {
  run_id: string;
  attempt: number;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED";
  reason?: string | null;
  result_refused?: string;
}

export interface Reprocess {
  dataset?: string | null;
  run?: string | null;
  fires?: FireRange | null;
  partition?: Record<string, string | number> | null;
  from?: Record<string, string | number> | null;
  to?: Record<string, string | number> | null;
  scope?: "downstream" | "only";
  upto?: string | null;
  concurrency?: number;
  properties?: Record<string, unknown>;
  dry_run?: boolean;
}

export interface Rerun {
  from?: string | null;
  only?: string | null;
  all?: boolean;
  elements?: "failed" | number[] | null;
}

export interface RerunOfDag {
  round: number;
  at: string;
  by: string;
  what: string;
  request: string;
  node?: string | null;
  elements?: number[];
}

export interface Resources {
  workers?: number | null;
  vcpu?: number | null;
  memory_gb?: number | null;
  disk_gb?: number | null;
  application?: string | null;
}

export interface Retries {
  attempts?: number;
  delay?: string;
  backoff?: "fixed" | "exponential";
  max_delay?: string;
  jitter?: boolean;
  on?: ("failed" | "timed_out" | "lost")[];
}

export interface Run {
  run_id: string;
  attempt: number;
  attempts: number;
  schedule: string;
  workflow: string;
  workflow_version: number | null;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED";
  reason: string;
  code: string | null;
  fired_by: string;
  kind: "gathering" | "fire" | "detached" | "run_now" | "retry" | "redrive" | "backfill";
  number: number | null;
  waited_for: string | null;
  waited_ms: number;
  took_ms: number | null;
  start_by: string | null;
  end_by: string | null;
  billed: Billed | null;
  backfill: string | null;
  rerun_of: string | null;
  requested_by: string | null;
  outcome: "failed" | "timed_out" | "lost" | null;
  metrics: Record<string, unknown> | null;
  priority: number;
  correlation: Record<string, string> | null;
  partition: Record<string, string> | null;
  dag: PartOfDag | null;
  properties: Record<string, unknown>;
  target: Record<string, unknown>;
  target_id: string | null;
  context: string;
  created_at: string;
  nominal_at: string | null;
  due_at: string | null;
  late: boolean;
  lateness_ms: number | null;
  late_by_ms: number | null;
  accepted_at: string | null;
  claimed_at: string;
  start_requested_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  start_calls: number;
  count: number;
  fire: string | null;
  spread: PlaceInFire | null;
  sends: Sends | null;
  registered?: PartitionOfRun[];
  each?: ElementOfRun;
  result?: unknown;
  result_refused?: string;
}

export interface RunInFull {
  run_id: string;
  attempt: number;
  attempts: number;
  schedule: string;
  workflow: string;
  workflow_version: number | null;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED";
  reason: string;
  code: string | null;
  fired_by: string;
  kind: "gathering" | "fire" | "detached" | "run_now" | "retry" | "redrive" | "backfill";
  number: number | null;
  waited_for: string | null;
  waited_ms: number;
  took_ms: number | null;
  start_by: string | null;
  end_by: string | null;
  billed: Billed | null;
  backfill: string | null;
  rerun_of: string | null;
  requested_by: string | null;
  outcome: "failed" | "timed_out" | "lost" | null;
  metrics: Record<string, unknown> | null;
  priority: number;
  correlation: Record<string, string> | null;
  partition: Record<string, string> | null;
  dag: PartOfDag | null;
  properties: Record<string, unknown>;
  target: Record<string, unknown>;
  target_id: string | null;
  context: string;
  created_at: string;
  nominal_at: string | null;
  due_at: string | null;
  late: boolean;
  lateness_ms: number | null;
  late_by_ms: number | null;
  accepted_at: string | null;
  claimed_at: string;
  start_requested_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  start_calls: number;
  count: number;
  fire: string | null;
  spread: PlaceInFire | null;
  sends: Sends | null;
  registered?: PartitionOfRun[];
  each?: ElementOfRun;
  result?: unknown;
  result_refused?: string;
  lineage?: LineageOfRun;
  events: EventOfRun[];
  history: Run[];
}

export interface RunInShort {
  run_id: string;
  attempt: number;
  schedule: string;
  workflow: string;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED";
  claimed_at: string;
  started_at: string | null;
  end_by: string | null;
}

export interface RunNow {
  properties?: Record<string, unknown>;
  at?: string | null;
  partition?: Record<string, string | number> | null;
}

export interface RunOfDag {
  run_id: string;
  dag: string;
  graph: string;
  state: string;
  fired_by: string;
  partition: Record<string, string> | null;
  nominal_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  end_by: string | null;
  late: boolean;
  why?: string;
  reruns: RerunOfDag[];
  nodes: Record<string, StateOfNode>;
  edges?: Edge[];
}

export interface RunOfPartition {
  run_id: string;
  schedule: string;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED";
  reason: string;
  code: string | null;
  at: string;
  ended_at: string | null;
  backfill: string | null;
}

export interface RunningNow {
  count: number;
  at_least: boolean;
  runs: RunInShort[];
}

export interface ScheduleInShort {
  name: string;
  app: string;
  state: "enabled" | "hold" | "backlog" | "drain" | "completed" | "disabled" | "deleted";
  enabled: boolean;
  pause_reason: string | null;
  stops: Stop[];
  triggered_by: string;
  workflow: string;
  tags: Record<string, string>;
  priority: number | null;
  policy: string | null;
  version: number;
  generation: number;
  skips: string[];
  dag: string | null;
  updated_at: string;
  updated_by: string;
}

export interface SecretReference {
  ssm?: string | null;
  secrets_manager?: string | null;
}

export interface SecretUrl {
  ssm?: string | null;
  secrets_manager?: string | null;
  host: string;
}

export interface Sends {
  first: string;
  last: string;
  late_p50: number;
  late_max: number;
}

export interface Share {
  reserved: number;
}

export interface SinceLastRun {
  type: "since_last_run";
  at_least: string;
  of?: "success" | "any";
  on_unmet?: "abort" | "wait";
}

export interface SizeTrigger {
  type: "size";
  dataset: string;
  bytes: number | string;
}

export interface SnsTarget {
  type: "sns";
  format?: "cloudevents" | null;
  event_type?: string | null;
  topic_arn: string;
  subject?: string | null;
  group?: string | null;
}

export interface Spread {
  count: number;
  over?: string | null;
  overflow?: "late" | "drop";
}

export interface SqsTarget {
  type: "sqs";
  format?: "cloudevents" | null;
  event_type?: string | null;
  queue_url: string;
  group?: string | null;
}

export interface Start {
  tag?: string | null;
  dry_run?: boolean;
}

export interface StateOfConstraint {
  used: number | null;
  max: number | null;
  held_by: string[] | null;
  type: string;
  met: boolean;
  why: string;
  until: string | null;
}

export interface StateOfFire {
  sent: number;
  failed: number;
  waiting: number;
  retrying: number;
  dropped: number;
  unknown: number;
  id: string;
  schedule: string;
  workflow: string | null;
  nominal_at: string;
  events: number;
  state: "WAITING" | "SENDING" | "SENT" | "FAILED" | "DROPPED" | "UNKNOWN";
  sends: Sends | null;
  at_least: boolean;
}

export interface StateOfLease {
  lease: string;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED";
  cancel: boolean;
  reason: string | null;
  expires_at: string;
}

export interface StateOfNode {
  state: string;
  why: string;
  code: string | null;
  run_id: string | null;
  started_at: string | null;
  ended_at: string | null;
  attempt?: number | null;
  round?: number | null;
  workflow?: string;
  when?: "all_succeeded" | "none_failed" | "all_done" | "one_succeeded" | "one_failed" | "always";
  result?: unknown;
  result_refused?: string;
  elements?: Elements;
}

export interface Step {
  at: string;
  event: string;
  touched: boolean;
  fires: boolean;
  why: string;
  arrived: string[];
  missing: string[];
}

export interface StepFunctionsTarget {
  type: "step_functions";
  state_machine: string;
  poll_every?: string | null;
}

export interface Stop {
  namespace: string;
  app: string | null;
  tag: string | null;
  reason: string;
  by: string;
  since: string;
  state: string;
  timeouts: "count" | "stop";
}

export interface StopReport {
  changed: string[];
  unchanged: string[];
  failed: FailedChange[];
  complete: boolean;
  dry_run: boolean;
  stops: Stop[];
}

export interface Stops {
  stops: Stop[];
}

export interface StoredAccess {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  members: Member[];
}

export interface StoredAllowed {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  execution_roles?: string[] | null;
  applications?: string[] | null;
  entry_points?: string[] | null;
  spark?: string[] | null;
  queues?: string[] | null;
  topics?: string[] | null;
  functions?: string[] | null;
  buses?: string[] | null;
  state_machines?: string[] | null;
  engines?: string[] | null;
  actions?: string[] | null;
  hosts?: string[] | null;
  secrets?: string[] | null;
  buckets?: string[] | null;
  metrics?: string[] | null;
  alarms?: string[] | null;
  target_role?: string | null;
}

export interface StoredApp {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  deployed?: Record<string, unknown> | null;
}

export interface StoredBackfill {
  from?: string | null;
  backfill_id: string;
  schedule: string;
  state: "RUNNING" | "DONE" | "CANCELLED" | "ENDED";
  reason: string | null;
  order: "oldest" | "newest";
  only: "all" | "missing" | "failed";
  left_alone: number;
  in_flight: unknown[];
  left_out: number;
  incomplete: unknown[];
  concurrency: number;
  dataset: string | null;
  total: number | null;
  launched: number;
  waiting: number | null;
  running: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  position: unknown;
  properties: Record<string, unknown>;
  failures: FailedRun[] | null;
  active: ActiveEntry[];
  created_at: string;
  created_by: string;
  ended_at: string | null;
  first?: unknown;
  last?: unknown;
  to?: string | null;
}

export interface StoredCalendar {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  days: (string | Record<string, string>)[];
}

export interface StoredDag {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  trigger: TimeTrigger | PartitionTrigger | SizeTrigger | ProgramStatusTrigger | EventTrigger | CloudWatchAlarmTrigger | QuietTrigger | ElapsedTrigger | AbsentTrigger | AllTrigger | AnyOfTrigger | AtLeastTrigger;
  by?: string[];
  per?: Per | null;
  incomplete?: Incomplete | null;
  late?: "ignore" | "again";
  timeout?: Timeout | "never";
  zone?: string;
  catch_up?: CatchUp;
  concurrency?: DagConcurrency | null;
  run_timeout?: string | null;
  deadline?: Deadline | null;
  notify?: Notify[];
  nodes: Record<string, Node>;
  edges?: Edge[];
  state?: "enabled" | "hold" | "backlog" | "drain" | "completed" | "disabled" | "deleted" | null;
  enabled?: boolean | null;
  stops?: Stop[] | null;
  skips?: string[] | null;
  triggered_by?: string | null;
  schedules?: string[] | null;
}

export interface StoredDataset {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  bucket: string;
  prefix: string;
  format?: "files" | "iceberg";
  keys?: string[];
  ready?: Readiness;
  count_overwrites?: boolean;
  rewritten?: "again" | "ignore";
  period?: PeriodRule | null;
  values?: Record<string, string[] | "seen_last">;
  fresh?: string | null;
  priority?: number | null;
  operations?: ("append" | "overwrite" | "delete" | "replace")[];
  glue_table?: string | null;
  single_writer?: boolean;
  newest?: Newest | null;
  freshness?: Freshness | null;
  ignored?: IgnoredObject[] | null;
}

export interface StoredGrants {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  grants: Grant[];
}

export interface StoredMessage {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  data?: unknown;
  data_base64?: string | null;
  content_type?: string | null;
  data_uri?: string | null;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  schedule: unknown;
  due_time: string | null;
  repeats: number | null;
  ttl: string | null;
  zone: string;
  next_fire: string | null;
  target?: EmrServerlessTarget | WorkerTarget | SqsTarget | SnsTarget | HttpTarget | LambdaTarget | EventBusTarget | StepFunctionsTarget | EcsTarget | BatchTarget | GlueTarget | AthenaTarget | EmrEksTarget | AwsApiTarget | null;
  workflow?: string | null;
}

export interface StoredNamespace {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
}

export interface StoredPolicy {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  aging?: string | null;
  max_events: number;
  interval?: string;
  margin?: string | null;
  waiting?: number | null;
  next_start_at?: string | null;
  parts?: PartOfQueue[] | null;
}

export interface StoredPool {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  aging?: string | null;
  size: number;
  unit?: "slots" | "vcpu";
  shares?: Record<string, Share>;
  in_use?: number | null;
  waiting?: number | null;
  parts?: Record<string, unknown>[] | null;
}

export interface StoredQuotas {
  schedules?: number | null;
  fires_per_second?: number | null;
  documents?: number | null;
  requests_per_second?: number | null;
  waiting_jobs?: number | null;
  name: string;
  kind: string;
  version: number;
  effective: EffectiveQuotas;
  used: UsedQuotas;
}

export interface StoredReprocess {
  dataset: string | null;
  run: string | null;
  fires: FiresOfReprocess | null;
  waiting: number;
  running: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  reprocess_id: string;
  namespace: string;
  state: "RUNNING" | "DONE" | "FAILED" | "CANCELLED";
  reason: string | null;
  first: unknown;
  last: unknown;
  concurrency: number;
  properties: Record<string, unknown>;
  total: number;
  steps: StoredStepOfReprocess[];
  created_at: string;
  created_by: string;
  ended_at: string | null;
}

export interface StoredSchedule {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  data?: unknown;
  data_base64?: string | null;
  content_type?: string | null;
  data_uri?: string | null;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  workflow: string;
  trigger: TimeTrigger | PartitionTrigger | SizeTrigger | ProgramStatusTrigger | EventTrigger | CloudWatchAlarmTrigger | QuietTrigger | ElapsedTrigger | AbsentTrigger | AllTrigger | AnyOfTrigger | AtLeastTrigger;
  by?: string[];
  values?: Record<string, string[]>;
  per?: Per | null;
  incomplete?: Incomplete | null;
  late?: "ignore" | "again";
  constraints?: (Concurrency | Delay | TimeWindow | SinceLastRun | Rate | Fresh | Load | Approval | Probe | Calendar | DatasetFresh)[];
  properties?: Record<string, unknown>;
  priority?: number | null;
  timeout?: Timeout | "never";
  zone?: string;
  coalesce?: boolean;
  pause_after_failures?: number | null;
  policy?: string | null;
  retries?: Retries | null;
  pool?: string | null;
  slots?: number | null;
  resources?: Resources | null;
  deadline?: Deadline | null;
  expected?: string | null;
  run_timeout?: string | null;
  catch_up?: CatchUp;
  ttl?: string | null;
  when_done?: "keep" | "delete";
  spread?: Spread | null;
  notify?: Notify[];
  state: "enabled" | "hold" | "backlog" | "drain" | "completed" | "disabled" | "deleted";
  enabled: boolean;
  pause_reason: string | null;
  stops: Stop[];
  skips: string[];
  triggered_by: string;
  generation: number;
  fires_per_day?: number | null;
  notes?: string[] | null;
  effect?: EffectOfPut | null;
  dag?: string | null;
}

export interface StoredStepOfReprocess {
  step: number;
  schedule: string;
  workflow: string;
  after: number[];
  why: string;
  registered: boolean;
  total: number;
  waiting: number;
  running: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  state: "waiting" | "running" | "succeeded" | "failed" | "skipped" | "cancelled";
  reason: string | null;
  backfill_id: string | null;
  failures: FailedRun[] | null;
}

export interface StoredWorkflow {
  name: string;
  kind: string;
  version: number;
  updated_at: string;
  updated_by: string;
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  target: EmrServerlessTarget | WorkerTarget | SqsTarget | SnsTarget | HttpTarget | LambdaTarget | EventBusTarget | StepFunctionsTarget | EcsTarget | BatchTarget | GlueTarget | AthenaTarget | EmrEksTarget | AwsApiTarget;
  properties?: Record<string, unknown>;
  priority?: number;
  retries?: Retries;
  delivery?: Delivery;
  timeout?: string;
  start_timeout?: string | null;
  pool?: string | null;
  slots?: number | null;
  resources?: Resources | null;
  deadline?: Deadline | null;
  expected?: string | null;
  notify?: Notify[];
  approval?: Approval | null;
  reads?: string[];
  produces?: (string | Registered)[];
}

export interface TimeTrigger {
  type: "time";
  expression?: string | Record<string, unknown> | null;
  zone?: string | null;
  due_time?: string | null;
  start?: string | null;
  end?: string | null;
  repeats?: number | null;
  jitter?: string | null;
  gap?: "after" | "skip";
  overlap?: "first" | "second" | "both";
  excluding?: (string | Record<string, string>)[];
  calendar?: string | null;
}

export interface TimeWindow {
  type: "time_window";
  start: string;
  end: string;
  zone?: string | null;
  days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
  on_unmet?: "abort" | "wait";
}

export interface Timeline {
  from: string;
  to: string;
  names: string[];
  workflows: string[];
  states: ("STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED")[];
  row: number[];
  at: number[];
  waited: number[];
  starting: number[];
  took: (number | null)[];
  state: number[];
  count: number[];
  ids?: string[] | null;
  at_least: boolean;
  complete_from: string;
}

export interface Timeout {
  after?: string;
  then?: "abort" | "run";
}

export interface UseOfLimit {
  used: number | null;
  max: number | null;
  held_by: string[] | null;
  name: string;
  text: string;
  rule: string;
  waiting: number;
  waits_here: boolean;
}

export interface UsedQuotas {
  schedules: number;
  fires_per_second: number;
  documents: number;
  waiting_jobs: number;
}

export interface Verdict {
  reason?: string;
}

export interface VersionOfSchedule {
  version: number;
  created_at: string;
  created_by: string;
  changes: string[];
  definition: Record<string, unknown>;
}

export interface Waiter {
  position: number;
  job_id: string;
  schedule: string;
  attempt: number | null;
  count: number;
}

export interface WaitingNow {
  count: number;
  at_least: boolean;
  groups: HeldJobs[];
  groups_left_out: number;
}

export interface WhoAmI {
  arn: string;
  account: string | null;
  region: string | null;
  stage: string | null;
  version: string;
}

export interface WhyDag {
  dag: string;
  state: "enabled" | "hold" | "backlog" | "drain" | "completed" | "disabled" | "deleted";
  why: string;
  next_fire: string | null;
  failures: LastFailure[];
  refs: Ref[];
}

export interface WhyJob {
  job_id: string;
  schedule: string;
  state: "PENDING_TRIGGER" | "PENDING_CONSTRAINTS" | "PENDING_LAUNCH";
  decision: string;
  why: string;
  code: string;
  queue: PlaceInQueue | null;
  fired_by: string | null;
  arrived: string[];
  missing: string[];
  since: string;
  correlation: Record<string, string> | null;
  wakes: string;
  constraints: StateOfConstraint[];
  tree: PartOfTrigger | null;
  limits: UseOfLimit[];
  count: number;
  refs: Ref[];
}

export interface WhyRun {
  run_id: string;
  kind: "run" | "record";
  schedule: string;
  state: "STARTING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "RETRYING" | "CANCELLED" | "ABORTED" | "ABORTED" | "DROPPED" | "COALESCED" | "SKIPPED" | "EXPIRED" | "LATE";
  why: string;
  code: string | null;
  at: string | null;
  fired_by: string | null;
  waited_ms: number | null;
  refs: Ref[];
}

export interface WhySchedule {
  schedule: string;
  state: "enabled" | "hold" | "backlog" | "drain" | "completed" | "disabled" | "deleted";
  why: string;
  next_fire: string | null;
  constraints: StateOfConstraint[];
  limits: UseOfLimit[];
  jobs: WhyJob[];
  ended: EndedWork[];
  failures: LastFailure[];
  tree: PartOfTrigger;
  refs: Ref[];
}

export interface WorkerTarget {
  type: "worker";
  pool: string;
  arguments?: string[];
  heartbeat?: string;
}

export interface Workflow {
  description?: string;
  tags?: Record<string, string>;
  owner?: string;
  target: EmrServerlessTarget | WorkerTarget | SqsTarget | SnsTarget | HttpTarget | LambdaTarget | EventBusTarget | StepFunctionsTarget | EcsTarget | BatchTarget | GlueTarget | AthenaTarget | EmrEksTarget | AwsApiTarget;
  properties?: Record<string, unknown>;
  priority?: number;
  retries?: Retries;
  delivery?: Delivery;
  timeout?: string;
  start_timeout?: string | null;
  pool?: string | null;
  slots?: number | null;
  resources?: Resources | null;
  deadline?: Deadline | null;
  expected?: string | null;
  notify?: Notify[];
  approval?: Approval | null;
  reads?: string[];
  produces?: (string | Registered)[];
}

/** Operation -> its answer. */
export interface Answers {
  "GET /v1/audit": {
    items: AuditRecord[];
    next_cursor: string | null;
  };
  "GET /v1/fires/{fire_id}": StateOfFire;
  "GET /v1/fires/{fire_id}/events": {
    items: EventInFire[];
    next_cursor: string | null;
  };
  "GET /v1/health": Health;
  "GET /v1/jobs/{job_id}": Job;
  "POST /v1/jobs/{job_id}/approve": Job;
  "POST /v1/jobs/{job_id}/cancel": RecordOfWork;
  "POST /v1/jobs/{job_id}/refuse": Refused;
  "GET /v1/jobs/{job_id}/why": WhyJob;
  "POST /v1/leases/{lease_id}/heartbeat": StateOfLease;
  "POST /v1/leases/{lease_id}/release": ReportedEnd;
  "POST /v1/leases/{lease_id}/report": ReportedEnd;
  "GET /v1/namespaces": {
    items: StoredNamespace[];
    next_cursor: string | null;
  };
  "DELETE /v1/namespaces/{ns}": null;
  "GET /v1/namespaces/{ns}": StoredNamespace;
  "PUT /v1/namespaces/{ns}": Change;
  "GET /v1/namespaces/{ns}/access": StoredAccess;
  "PUT /v1/namespaces/{ns}/access": ChangeOfAccess;
  "GET /v1/namespaces/{ns}/allowed": StoredAllowed;
  "PUT /v1/namespaces/{ns}/allowed": Change;
  "GET /v1/namespaces/{ns}/allowed/proposal": ProposedAllowed;
  "GET /v1/namespaces/{ns}/apps": {
    items: StoredApp[];
    next_cursor: string | null;
  };
  "DELETE /v1/namespaces/{ns}/apps/{app}": null;
  "GET /v1/namespaces/{ns}/apps/{app}": StoredApp;
  "PUT /v1/namespaces/{ns}/apps/{app}": Deployment | LaterDeployment;
  "POST /v1/namespaces/{ns}/apps/{app}/bulk": BulkChange;
  "GET /v1/namespaces/{ns}/apps/{app}/dags": {
    items: StoredDag[];
    next_cursor: string | null;
  };
  "DELETE /v1/namespaces/{ns}/apps/{app}/dags/{name}": null;
  "GET /v1/namespaces/{ns}/apps/{app}/dags/{name}": StoredDag;
  "PUT /v1/namespaces/{ns}/apps/{app}/dags/{name}": StoredDag;
  "POST /v1/namespaces/{ns}/apps/{app}/dags/{name}/disable": StoredDag;
  "POST /v1/namespaces/{ns}/apps/{app}/dags/{name}/enable": StoredDag;
  "POST /v1/namespaces/{ns}/apps/{app}/dags/{name}/pause": StoredDag;
  "POST /v1/namespaces/{ns}/apps/{app}/dags/{name}/resume": StoredDag;
  "POST /v1/namespaces/{ns}/apps/{app}/dags/{name}/run": BegunDag;
  "GET /v1/namespaces/{ns}/apps/{app}/dags/{name}/runs": {
    items: RunOfDag[];
    next_cursor: string | null;
  };
  "GET /v1/namespaces/{ns}/apps/{app}/dags/{name}/runs/{run_id}": RunOfDag;
  "GET /v1/namespaces/{ns}/apps/{app}/dags/{name}/runs/{run_id}/nodes/{node}/elements": {
    items: Element[];
    next_cursor: string | null;
  };
  "POST /v1/namespaces/{ns}/apps/{app}/dags/{name}/runs/{run_id}/rerun": RunOfDag;
  "POST /v1/namespaces/{ns}/apps/{app}/dags/{name}/skip": StoredDag;
  "POST /v1/namespaces/{ns}/apps/{app}/dags/{name}/unskip": StoredDag;
  "GET /v1/namespaces/{ns}/apps/{app}/dags/{name}/why": WhyDag;
  "GET /v1/namespaces/{ns}/apps/{app}/deployments/{upload}": LaterDeployment;
  "GET /v1/namespaces/{ns}/apps/{app}/messages": {
    items: StoredMessage[];
    next_cursor: string | null;
  };
  "DELETE /v1/namespaces/{ns}/apps/{app}/messages/{name}": null;
  "GET /v1/namespaces/{ns}/apps/{app}/messages/{name}": StoredMessage;
  "PUT /v1/namespaces/{ns}/apps/{app}/messages/{name}": StoredMessage;
  "GET /v1/namespaces/{ns}/apps/{app}/messages/{name}/runs": {
    items: Run[];
    next_cursor: string | null;
  };
  "GET /v1/namespaces/{ns}/apps/{app}/messages/{name}/why": WhySchedule;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules": {
    items: StoredSchedule[];
    next_cursor: string | null;
  };
  "DELETE /v1/namespaces/{ns}/apps/{app}/schedules/{name}": null;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}": StoredSchedule;
  "PUT /v1/namespaces/{ns}/apps/{app}/schedules/{name}": StoredSchedule;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/backfills": {
    items: StoredBackfill[];
    next_cursor: string | null;
  };
  "POST /v1/namespaces/{ns}/apps/{app}/schedules/{name}/backfills": PlanOfBackfill | StoredBackfill;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/backfills/{backfill_id}": StoredBackfill;
  "POST /v1/namespaces/{ns}/apps/{app}/schedules/{name}/backfills/{backfill_id}/cancel": StoredBackfill;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/days": DaysOfSchedule;
  "POST /v1/namespaces/{ns}/apps/{app}/schedules/{name}/disable": StoredSchedule;
  "POST /v1/namespaces/{ns}/apps/{app}/schedules/{name}/dry-run": DryRunOfTrigger;
  "POST /v1/namespaces/{ns}/apps/{app}/schedules/{name}/enable": StoredSchedule;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/jobs": {
    items: Job[];
    next_cursor: string | null;
  };
  "POST /v1/namespaces/{ns}/apps/{app}/schedules/{name}/pause": StoredSchedule;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/periods": {
    items: PeriodOfSchedule[];
    next_cursor: string | null;
    complete_from: string;
  };
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/preview": Preview;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/records": {
    items: RecordOfWork[];
    next_cursor: string | null;
  };
  "POST /v1/namespaces/{ns}/apps/{app}/schedules/{name}/resume": StoredSchedule;
  "POST /v1/namespaces/{ns}/apps/{app}/schedules/{name}/run": Accepted;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/runs": {
    items: Run[];
    next_cursor: string | null;
  };
  "POST /v1/namespaces/{ns}/apps/{app}/schedules/{name}/skip": StoredSchedule;
  "POST /v1/namespaces/{ns}/apps/{app}/schedules/{name}/unskip": StoredSchedule;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/versions": {
    items: VersionOfSchedule[];
    next_cursor: string | null;
  };
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/why": WhySchedule;
  "POST /v1/namespaces/{ns}/apps/{app}/start": StopReport;
  "POST /v1/namespaces/{ns}/apps/{app}/stop": StopReport;
  "POST /v1/namespaces/{ns}/apps/{app}/uploads": BegunUpload;
  "GET /v1/namespaces/{ns}/apps/{app}/workflows": {
    items: StoredWorkflow[];
    next_cursor: string | null;
  };
  "DELETE /v1/namespaces/{ns}/apps/{app}/workflows/{name}": null;
  "GET /v1/namespaces/{ns}/apps/{app}/workflows/{name}": StoredWorkflow;
  "PUT /v1/namespaces/{ns}/apps/{app}/workflows/{name}": Change;
  "GET /v1/namespaces/{ns}/apps/{app}/workflows/{name}/runs": {
    items: Run[];
    next_cursor: string | null;
  };
  "GET /v1/namespaces/{ns}/audit": {
    items: AuditRecord[];
    next_cursor: string | null;
  };
  "GET /v1/namespaces/{ns}/calendars": {
    items: StoredCalendar[];
    next_cursor: string | null;
  };
  "DELETE /v1/namespaces/{ns}/calendars/{name}": null;
  "GET /v1/namespaces/{ns}/calendars/{name}": StoredCalendar;
  "PUT /v1/namespaces/{ns}/calendars/{name}": Change;
  "GET /v1/namespaces/{ns}/datasets": {
    items: StoredDataset[];
    next_cursor: string | null;
  };
  "DELETE /v1/namespaces/{ns}/datasets/{name}": null;
  "GET /v1/namespaces/{ns}/datasets/{name}": StoredDataset;
  "PUT /v1/namespaces/{ns}/datasets/{name}": Change;
  "GET /v1/namespaces/{ns}/datasets/{name}/partition": OnePartition;
  "GET /v1/namespaces/{ns}/datasets/{name}/partitions": {
    items: RegisteredPartition[];
    next_cursor: string | null;
    at_least: boolean;
  };
  "POST /v1/namespaces/{ns}/datasets/{name}/partitions": RegisteredPartition;
  "GET /v1/namespaces/{ns}/dead-letters": {
    items: DeadLetter[];
    next_cursor: string | null;
  };
  "POST /v1/namespaces/{ns}/dead-letters/redrive": RedrivenLetters;
  "DELETE /v1/namespaces/{ns}/dead-letters/{run_id}": null;
  "POST /v1/namespaces/{ns}/dead-letters/{run_id}/redrive": Redriven;
  "POST /v1/namespaces/{ns}/events": AcceptedEvents;
  "GET /v1/namespaces/{ns}/fires": Fires;
  "POST /v1/namespaces/{ns}/glance": Glances;
  "GET /v1/namespaces/{ns}/grants": StoredGrants;
  "PUT /v1/namespaces/{ns}/grants": Change;
  "GET /v1/namespaces/{ns}/graph": Graph;
  "GET /v1/namespaces/{ns}/jobs": {
    items: Job[];
    next_cursor: string | null;
  };
  "GET /v1/namespaces/{ns}/limits": {
    items: Limit[];
    next_cursor: string | null;
  };
  "GET /v1/namespaces/{ns}/now": Now;
  "GET /v1/namespaces/{ns}/outcomes": Outcomes;
  "GET /v1/namespaces/{ns}/periods": {
    items: PeriodsByDay[];
    next_cursor: string | null;
    from: string;
    to: string;
  };
  "GET /v1/namespaces/{ns}/policies": {
    items: StoredPolicy[];
    next_cursor: string | null;
  };
  "DELETE /v1/namespaces/{ns}/policies/{name}": null;
  "GET /v1/namespaces/{ns}/policies/{name}": StoredPolicy;
  "PUT /v1/namespaces/{ns}/policies/{name}": Change;
  "GET /v1/namespaces/{ns}/pools": {
    items: StoredPool[];
    next_cursor: string | null;
  };
  "DELETE /v1/namespaces/{ns}/pools/{name}": null;
  "GET /v1/namespaces/{ns}/pools/{name}": StoredPool;
  "PUT /v1/namespaces/{ns}/pools/{name}": Change;
  "DELETE /v1/namespaces/{ns}/prefixes": null;
  "PUT /v1/namespaces/{ns}/prefixes": OwnedPrefix;
  "GET /v1/namespaces/{ns}/quotas": StoredQuotas;
  "PUT /v1/namespaces/{ns}/quotas": Change;
  "GET /v1/namespaces/{ns}/records": {
    items: RecordOfWork[];
    next_cursor: string | null;
  };
  "GET /v1/namespaces/{ns}/reports": {
    items: ReportOfWorkflow[];
    next_cursor: string | null;
    day: string;
  };
  "GET /v1/namespaces/{ns}/reprocess": {
    items: StoredReprocess[];
    next_cursor: string | null;
  };
  "POST /v1/namespaces/{ns}/reprocess": PlanOfReprocess | StoredReprocess;
  "GET /v1/namespaces/{ns}/reprocess/{reprocess_id}": StoredReprocess;
  "POST /v1/namespaces/{ns}/reprocess/{reprocess_id}/cancel": StoredReprocess;
  "GET /v1/namespaces/{ns}/runs": {
    items: Run[];
    next_cursor: string | null;
  };
  "GET /v1/namespaces/{ns}/schedules": {
    items: ScheduleInShort[];
    next_cursor: string | null;
  };
  "POST /v1/namespaces/{ns}/start": StopReport;
  "POST /v1/namespaces/{ns}/stop": StopReport;
  "GET /v1/namespaces/{ns}/stops": Stops;
  "GET /v1/namespaces/{ns}/timeline": Timeline;
  "GET /v1/openapi.json": OpenApiDocument;
  "GET /v1/prefixes": {
    items: OwnedPrefix[];
    next_cursor: string | null;
  };
  "GET /v1/runs/{run_id}": RunInFull;
  "POST /v1/runs/{run_id}/cancel": Run;
  "GET /v1/runs/{run_id}/lineage": Lineage;
  "GET /v1/runs/{run_id}/logs": Logs;
  "POST /v1/runs/{run_id}/ping": Run;
  "POST /v1/runs/{run_id}/rerun": Accepted;
  "GET /v1/runs/{run_id}/why": WhyRun;
  "GET /v1/whoami": WhoAmI;
  "POST /v1/workers/{pool}/claim": Leases;
}
