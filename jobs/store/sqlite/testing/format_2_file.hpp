#pragma once

// A store's file of format 2, written by the last version that had it and dumped as SQL: jobs that
// are ready, scheduled, held for a key and for another job, dead, in a batch, and leased at the stop.

namespace sluice::jobs::testing {

inline constexpr const char* format_2_file = R"(
CREATE TABLE batches (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  open INTEGER NOT NULL,
  total INTEGER NOT NULL,
  pending INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  due_at INTEGER,
  keep_done INTEGER NOT NULL,
  keep_failed INTEGER NOT NULL
);
INSERT INTO "batches" VALUES(8,'b',0,2,2,0,1795105786365,NULL,NULL,604800000,15552000000);
CREATE TABLE crons (
  name TEXT PRIMARY KEY,
  schedule TEXT NOT NULL,
  zone TEXT NOT NULL,
  missed TEXT NOT NULL,
  paused INTEGER NOT NULL,
  next_at INTEGER,
  last_at INTEGER,
  last_job INTEGER,
  runs INTEGER NOT NULL,
  missed_runs INTEGER NOT NULL,
  queue_name TEXT NOT NULL,
  job_id, job_queue, job_state, job_rank, job_turn, job_due_at, job_created_at, job_kind,
  job_args, job_ended_at, job_attempts, job_run_at, job_lease_for, job_time_limit, job_keep_for,
  job_retry_attempts, job_retry_first, job_retry_factor, job_retry_longest, job_retry_jitter,
  job_unique_key, job_unique_until, job_unique_for, job_metadata, job_errors, job_result,
  job_key, job_line, job_batch, job_after, job_step, job_webhook, job_blockers, job_has_place,
  job_progress, job_progress_text
);
INSERT INTO "crons" VALUES('nightly','0 3 * * *','UTC','one',0,1795143600000,NULL,NULL,0,0,
  'mail',0,0,2,0,0,NULL,0,'report','{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE edges (
  on_id INTEGER NOT NULL,
  job INTEGER NOT NULL,
  condition INTEGER NOT NULL,
  PRIMARY KEY (on_id, job, condition)
) WITHOUT ROWID;
INSERT INTO "edges" VALUES(5,7,0);
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  state INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  due_at INTEGER,
  created_at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  args NOT NULL,
  ended_at INTEGER,
  attempts INTEGER,
  run_at INTEGER,
  lease_for INTEGER,
  time_limit INTEGER,
  keep_for INTEGER,
  retry_attempts INTEGER,
  retry_first INTEGER,
  retry_factor REAL,
  retry_longest INTEGER,
  retry_jitter REAL,
  unique_key TEXT,
  unique_until TEXT,
  unique_for INTEGER,
  metadata TEXT,
  errors TEXT,
  result
, key TEXT, line INTEGER, batch INTEGER, after TEXT, step TEXT, webhook TEXT, blockers INTEGER,
  has_place INTEGER, progress REAL, progress_text TEXT);
INSERT INTO "jobs" VALUES(1,1,2,-3,1,NULL,1795105785862,'send','{"to": "ada"}',NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"trace": "x"}',NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(2,2,2,0,2,NULL,1795105785929,'plain','[1, 2, 3]',NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(3,2,0,0,3,1827505786000,1795105786000,'later','1',NULL,NULL,
  1827505786000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(4,2,2,0,4,NULL,1795105786054,'unique','2',NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,'u',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(5,2,2,0,5,NULL,1795105786209,'keyed','3',NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'k',-1278499049734684135,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(6,2,1,0,6,NULL,1795105786313,'keyed','4',NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'k',-1278499049734684135,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(7,2,1,0,7,NULL,1795105786361,'after','5',NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"on":5}]',NULL,
  NULL,1,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(9,2,2,0,9,NULL,1795105786364,'x','1',NULL,NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,8,NULL,NULL,NULL,NULL,NULL,
  NULL,NULL);
INSERT INTO "jobs" VALUES(10,2,2,0,10,NULL,1795105786364,'y','2',NULL,NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,8,NULL,NULL,NULL,NULL,NULL,
  NULL,NULL);
INSERT INTO "jobs" VALUES(11,3,6,0,11,1810657786412,1795105786393,'f','7',1795105786412,1,NULL,
  NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,
  '[{"attempt":1,"at":1795105786412,"type":"io","message":"no"}]',NULL,NULL,NULL,NULL,NULL,NULL,
  NULL,NULL,NULL,NULL,NULL);
CREATE TABLE leases (
  job INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  key INTEGER NOT NULL,
  worker TEXT NOT NULL,
  until INTEGER NOT NULL,
  began INTEGER NOT NULL
);
INSERT INTO "leases" VALUES(1,1,4475333568108726,'w',1827505786392,1795105786392);
CREATE TABLE lines (
  line INTEGER PRIMARY KEY,
  active INTEGER NOT NULL,
  waiting INTEGER NOT NULL
);
CREATE TABLE logs (
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  at INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job, number)
) WITHOUT ROWID;
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "meta" VALUES('ids_up_to',1001);
CREATE TABLE queues (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  capacity_jobs INTEGER NOT NULL,
  capacity_bytes INTEGER NOT NULL,
  when_full TEXT NOT NULL,
  paused INTEGER NOT NULL,
  lease_for INTEGER NOT NULL,
  keep_done INTEGER NOT NULL,
  keep_results INTEGER NOT NULL,
  keep_dead INTEGER NOT NULL,
  scheduled INTEGER NOT NULL DEFAULT 0,
  ready INTEGER NOT NULL DEFAULT 0,
  retrying INTEGER NOT NULL DEFAULT 0,
  done INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0
, held INTEGER NOT NULL DEFAULT 0, rate REAL NOT NULL DEFAULT 0,
  rate_burst INTEGER NOT NULL DEFAULT 0, concurrency INTEGER NOT NULL DEFAULT 0,
  weight INTEGER NOT NULL DEFAULT 1, key_concurrency INTEGER NOT NULL DEFAULT 1,
  key_rate REAL NOT NULL DEFAULT 0, key_burst INTEGER NOT NULL DEFAULT 0,
  deliver_url TEXT NOT NULL DEFAULT '', deliver_concurrency INTEGER NOT NULL DEFAULT 8,
  deliver_timeout INTEGER NOT NULL DEFAULT 30000);
INSERT INTO "queues" VALUES(1,'mail',100000000,68719476736,'reject',0,60000,0,3600000,
  15552000000,0,1,0,0,0,0,95,0,0.0,0,0,1,1,0.0,0,'',8,30000);
INSERT INTO "queues" VALUES(2,'default',100000000,68719476736,'reject',0,60000,0,3600000,
  15552000000,1,5,0,0,0,0,588,2,0.0,0,0,1,1,0.0,0,'',8,30000);
INSERT INTO "queues" VALUES(3,'fails',100000000,68719476736,'reject',0,60000,0,3600000,
  15552000000,0,0,0,0,1,0,0,0,0.0,0,0,1,1,0.0,0,'',8,30000);
CREATE TABLE unique_keys (
  queue INTEGER NOT NULL,
  key TEXT NOT NULL,
  job INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (queue, key)
) WITHOUT ROWID;
INSERT INTO "unique_keys" VALUES(2,'u',4,NULL);
CREATE INDEX jobs_ready ON jobs (queue, rank, turn) WHERE state = 2;
CREATE INDEX jobs_due ON jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_by_state ON jobs (state) WHERE state <> 2;
CREATE INDEX unique_keys_expiring ON unique_keys (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX jobs_batch ON jobs (batch) WHERE batch IS NOT NULL;
CREATE INDEX jobs_line ON jobs (line, turn)
  WHERE state = 1 AND blockers IS NULL AND line IS NOT NULL;
CREATE INDEX jobs_placed ON jobs (turn, line)
  WHERE line IS NOT NULL AND (state = 2 OR state = 4 OR has_place = 1);
CREATE INDEX edges_job ON edges (job);
CREATE INDEX batches_due ON batches (due_at) WHERE due_at IS NOT NULL;
PRAGMA application_id = 1936487779;
PRAGMA user_version = 2;
)";

}  // namespace sluice::jobs::testing
