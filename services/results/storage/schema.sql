-- The results database. Each migration runs once, in order, in a transaction of its own; never edit one that was released.
-- Times are UTC. Enumerations are the numbers of the protos. No secondary indexes: rows lie by job, and zone maps find them.

-- migration 1: jobs, items, metrics, current scores, events

-- How far each stream has been stored, written in the transaction that stores it. `created` tells a stream from a
-- later one of the same name, whose positions start again.
CREATE TABLE positions (
    stream VARCHAR PRIMARY KEY,
    created VARCHAR NOT NULL,
    sequence UBIGINT NOT NULL
);

-- The newest state of every job, from the audit trail. `event_id` is the event that it comes from, '' when the job was
-- sealed before its first event arrived. `job` is the serialised Job; the other columns are what lists filter by.
CREATE TABLE jobs (
    job_id VARCHAR PRIMARY KEY,
    event_id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    project_id BIGINT NOT NULL,
    suite VARCHAR NOT NULL,
    endpoint VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    state UTINYINT NOT NULL,
    attempt INTEGER NOT NULL,
    created_at TIMESTAMP NOT NULL,
    job BLOB NOT NULL
);

-- What became of every item. `outcome` as in item_result.proto: 1 answered, 2 unparsed, 3 output truncated, 4 refused,
-- 5 input truncated, 6 infrastructure error (the only one that is not final). `correct`, `value` and `target` are the
-- statistics that metrics are computed from; others are JSON in `other_statistics`.
CREATE TABLE items (
    job_id VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    item INTEGER NOT NULL,
    repeat INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    unit INTEGER NOT NULL,
    position INTEGER NOT NULL,
    outcome UTINYINT NOT NULL,
    prediction VARCHAR NOT NULL,
    reference VARCHAR NOT NULL,
    "group" VARCHAR NOT NULL,
    custom_id VARCHAR NOT NULL,
    item_hash VARCHAR NOT NULL,
    prompt_hash VARCHAR NOT NULL,
    prompt VARCHAR NOT NULL,
    response VARCHAR NOT NULL,
    reasoning VARCHAR NOT NULL,
    scorer_version VARCHAR NOT NULL,
    correct DOUBLE,
    value DOUBLE,
    target DOUBLE,
    other_statistics VARCHAR,
    latency_ms DOUBLE NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    finish_reason VARCHAR NOT NULL,
    calls INTEGER NOT NULL,
    error VARCHAR NOT NULL,
    extraction VARCHAR NOT NULL,
    served_model VARCHAR NOT NULL,
    evaluator VARCHAR NOT NULL,
    PRIMARY KEY (job_id, task, item, repeat)
);

-- A sealed attempt of a job: final, with everything that ranking needs. `complete` means that every planned item has a
-- final outcome. `job` and `result` are the serialised Job as planned and JobResult.
CREATE TABLE seals (
    job_id VARCHAR PRIMARY KEY,
    attempt INTEGER NOT NULL,
    sealed_at TIMESTAMP NOT NULL,
    missing INTEGER NOT NULL,
    infrastructure_errors INTEGER NOT NULL,
    complete BOOLEAN NOT NULL,
    suite VARCHAR NOT NULL,
    mode UTINYINT NOT NULL,
    item_set VARCHAR NOT NULL,
    subset BOOLEAN NOT NULL,
    configuration VARCHAR NOT NULL,
    job BLOB NOT NULL,
    result BLOB NOT NULL
);

-- Metrics of sealed jobs. `task` is '' for averages over tasks: 'score' and each metric's name, over `tasks` of them.
CREATE TABLE metrics (
    job_id VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    place INTEGER NOT NULL,
    tasks INTEGER NOT NULL,
    n INTEGER NOT NULL,
    mean DOUBLE,
    stderr DOUBLE,
    ci95_low DOUBLE,
    ci95_high DOUBLE,
    bound_low DOUBLE,
    bound_high DOUBLE,
    method VARCHAR NOT NULL,
    undefined_reason VARCHAR NOT NULL,
    PRIMARY KEY (job_id, task, metric)
);

-- The run that stands for a configuration on a leaderboard: its newest complete one.
CREATE TABLE current_scores (
    suite VARCHAR NOT NULL,
    mode UTINYINT NOT NULL,
    item_set VARCHAR NOT NULL,
    configuration VARCHAR NOT NULL,
    job_id VARCHAR NOT NULL,
    PRIMARY KEY (suite, mode, item_set, configuration)
);

-- The audit trail. `event` is the serialised JobEvent, whole job inside.
CREATE TABLE events (
    event_id VARCHAR PRIMARY KEY,
    job_id VARCHAR NOT NULL,
    occurred_at TIMESTAMP NOT NULL,
    actor VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    event BLOB NOT NULL
);

-- migration 2: continuations, time to the first token, reuse and cost of items

-- `continuations` is NULL but in log-likelihood mode. `identity` is what a stored answer is found by: 32 hexadecimal
-- digits kept in 16 bytes, NULL without one. `cost_usd` is NULL where no price is known. Parameters repeat from item to
-- item and compress to almost nothing.
ALTER TABLE items ADD COLUMN continuations
    STRUCT("text" VARCHAR, loglikelihood DOUBLE, tokens INTEGER, greedy BOOLEAN)[];
ALTER TABLE items ADD COLUMN ttft_ms DOUBLE DEFAULT 0;
ALTER TABLE items ADD COLUMN reused BOOLEAN DEFAULT false;
ALTER TABLE items ADD COLUMN parameters VARCHAR DEFAULT '';
ALTER TABLE items ADD COLUMN identity UUID;
ALTER TABLE items ADD COLUMN cost_usd DOUBLE;
ALTER TABLE items ADD COLUMN reasoning_tokens INTEGER DEFAULT 0;

-- migration 3: the bound of the answer store

-- What the texts of a finished job take. `attempt` is the one that ended at `ended_at`; `bytes` is NULL until it is
-- counted, and again when a later attempt ends. Rows up to `dropped_attempt` have lost their texts at `dropped_at`.
CREATE TABLE answer_texts (
    job_id VARCHAR PRIMARY KEY,
    attempt INTEGER NOT NULL,
    ended_at TIMESTAMP NOT NULL,
    bytes BIGINT,
    dropped_at TIMESTAMP,
    dropped_attempt INTEGER NOT NULL DEFAULT 0
);

-- 5 to 7 are the finished states. Creation stands in for the end, which only the serialised job tells.
INSERT INTO answer_texts (job_id, attempt, ended_at) SELECT job_id, attempt, created_at FROM jobs WHERE state >= 5;

-- migration 4: what boards, lists and overviews read, without unpacking jobs

ALTER TABLE jobs ADD COLUMN baseline BOOLEAN DEFAULT false;
ALTER TABLE jobs ADD COLUMN incomplete BOOLEAN DEFAULT false;
ALTER TABLE jobs ADD COLUMN finished_at TIMESTAMP;

-- A sealed job is the one in `jobs`: another copy would double them.
ALTER TABLE seals DROP COLUMN job;
ALTER TABLE seals ADD COLUMN not_ranked_reason VARCHAR DEFAULT '';

-- Metrics are only ever written together by job, so that a primary key would guard against nothing and take a gigabyte
-- at 20 million rows.
CREATE TABLE metrics_without_key AS FROM metrics ORDER BY rowid;
DROP TABLE metrics;
ALTER TABLE metrics_without_key RENAME TO metrics;

-- Averages over tasks of sealed jobs, "score" and each metric, beside what runs are chosen and grouped by. `counts` is
-- false for a run that failed, was cancelled or marked, or is being retried; `completed_at` is the seal's time until the
-- job's end is known.
CREATE TABLE run_scores (
    job_id VARCHAR NOT NULL,
    attempt INTEGER NOT NULL,
    suite VARCHAR NOT NULL,
    mode UTINYINT NOT NULL,
    item_set VARCHAR NOT NULL,
    subset BOOLEAN NOT NULL,
    configuration VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    project_id BIGINT NOT NULL,
    model VARCHAR NOT NULL,
    endpoint VARCHAR NOT NULL,
    baseline BOOLEAN NOT NULL,
    created_at TIMESTAMP NOT NULL,
    sealed_at TIMESTAMP NOT NULL,
    completed_at TIMESTAMP NOT NULL,
    complete BOOLEAN NOT NULL,
    counts BOOLEAN NOT NULL,
    not_ranked_reason VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    place INTEGER NOT NULL,
    tasks INTEGER NOT NULL,
    n INTEGER NOT NULL,
    mean DOUBLE,
    stderr DOUBLE,
    ci95_low DOUBLE,
    ci95_high DOUBLE,
    bound_low DOUBLE,
    bound_high DOUBLE,
    method VARCHAR NOT NULL,
    undefined_reason VARCHAR NOT NULL
);

-- The rows of the two newest complete runs that count of each configuration on an item set: `newest` 1 stands for it on
-- a leaderboard, 2 is the one before. `runs` counts all of them.
DROP TABLE current_scores;
CREATE TABLE current_scores AS FROM run_scores;
ALTER TABLE current_scores ADD COLUMN newest INTEGER;
ALTER TABLE current_scores ADD COLUMN runs INTEGER;

-- Items that runs have in common, as the newest of them was planned.
CREATE TABLE item_sets (
    suite VARCHAR NOT NULL,
    item_set VARCHAR NOT NULL,
    items INTEGER NOT NULL,
    published_items INTEGER NOT NULL,
    subset BOOLEAN NOT NULL,
    tasks VARCHAR[] NOT NULL,
    PRIMARY KEY (suite, item_set)
);

-- Names of configurations, '' for none.
CREATE TABLE configuration_names (
    configuration VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    alias VARCHAR NOT NULL,
    named_by VARCHAR NOT NULL,
    named_at TIMESTAMP NOT NULL
);

-- Every mark that a run was ever given, `mark` as in RunMark; the one with the highest number holds.
CREATE TABLE marks (
    number INTEGER PRIMARY KEY,
    job_id VARCHAR NOT NULL,
    mark UTINYINT NOT NULL,
    reason VARCHAR NOT NULL,
    superseded_by VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    marked_at TIMESTAMP NOT NULL
);
CREATE VIEW present_marks AS
FROM marks
QUALIFY row_number() OVER (PARTITION BY job_id ORDER BY number DESC) = 1;

-- migration 5: answers of other tools, until a run has taken them

-- `run` is the serialised ImportedRun. `whole` is false while answers still arrive; `job_id` is the newest job over it,
-- `done` once that is complete: its items then hold every answer, and those here go. `dropped_at` is NULL until then.
CREATE TABLE imports (
    import_id VARCHAR PRIMARY KEY,
    owner VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL,
    run BLOB NOT NULL,
    whole BOOLEAN NOT NULL,
    answers INTEGER NOT NULL,
    bytes BIGINT NOT NULL,
    job_id VARCHAR NOT NULL,
    done BOOLEAN NOT NULL,
    dropped_at TIMESTAMP
);

-- `prompts` is the number that GetImportResponse.prompts tells of.
CREATE TABLE imported_answers (
    import_id VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    item INTEGER NOT NULL,
    "repeat" INTEGER NOT NULL,
    prompts UBIGINT NOT NULL,
    "row" VARCHAR NOT NULL,
    prompt VARCHAR NOT NULL,
    response VARCHAR NOT NULL,
    finish_reason VARCHAR NOT NULL,
    continuations STRUCT("text" VARCHAR, loglikelihood DOUBLE, tokens INTEGER, greedy BOOLEAN)[] NOT NULL,
    latency_ms DOUBLE NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    error VARCHAR NOT NULL
);

-- migration 6: datasets, what people think of answers

-- The index of the datasets in the object store: there is where they are. `file_path` names the manifest's object,
-- `uploaded_at` is when the file had come whole, `created_at` when it was listed. `dataset` is the serialised Dataset.
-- Deleted ones stay, with `deleted_at`, so that old runs keep their name.
CREATE TABLE datasets (
    id VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    file_path VARCHAR NOT NULL,
    count INTEGER NOT NULL,
    uploaded_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP NOT NULL,
    owner VARCHAR NOT NULL,
    project_id BIGINT NOT NULL,
    digest VARCHAR NOT NULL,
    is_file BOOLEAN NOT NULL,
    dataset BLOB NOT NULL,
    deleted_at TIMESTAMP
);

-- Which shards datasets have, deleted ones none: a shard that no dataset has is removed from the object store.
CREATE TABLE dataset_shards (
    dataset_id VARCHAR NOT NULL,
    digest BLOB NOT NULL
);

-- Every verdict on an answer, `verdict` as in Annotation; the one with the highest number holds. 0 takes back what was
-- said before.
CREATE TABLE annotations (
    number INTEGER PRIMARY KEY,
    job_id VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    item INTEGER NOT NULL,
    "repeat" INTEGER NOT NULL,
    verdict UTINYINT NOT NULL,
    corrected_answer VARCHAR NOT NULL,
    note VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    annotated_at TIMESTAMP NOT NULL
);
CREATE VIEW present_annotations AS
FROM annotations
QUALIFY row_number() OVER (PARTITION BY job_id, task, item, "repeat" ORDER BY number DESC) = 1;

-- Of uploaded rows: their metadata as a JSON object, and more than one message as a JSON array.
ALTER TABLE items ADD COLUMN metadata VARCHAR DEFAULT '';
ALTER TABLE items ADD COLUMN messages VARCHAR DEFAULT '';

-- How answers are scored, in words, where item sets of one suite may differ in it.
ALTER TABLE item_sets ADD COLUMN scoring VARCHAR DEFAULT '';

-- Answers that the job planned, NULL before; and when its first attempt began to run.
ALTER TABLE jobs ADD COLUMN planned INTEGER;
ALTER TABLE jobs ADD COLUMN started_at TIMESTAMP;

-- Whose answers a job took.
CREATE TABLE run_sources (
    job_id VARCHAR PRIMARY KEY,
    source VARCHAR NOT NULL
);

-- Runs that do not count, with why: those marked so, `source` being '', and those with answers of one that was
-- invalidated (2), which `source` names, directly or by way of others.
CREATE VIEW uncounted_runs AS
WITH RECURSIVE spoiled AS (
    SELECT s.job_id, s.source AS origin
    FROM run_sources s
    JOIN present_marks m ON m.job_id = s.source
    WHERE m.mark = 2
    UNION
    SELECT s.job_id, spoiled.origin
    FROM run_sources s
    JOIN spoiled ON spoiled.job_id = s.source
)
SELECT job_id, mark, reason, superseded_by, '' AS source
FROM present_marks
WHERE mark <> 1
UNION ALL
SELECT spoiled.job_id, m.mark, m.reason, '', spoiled.origin
FROM spoiled
JOIN present_marks m ON m.job_id = spoiled.origin;

-- Runs over datasets. Figures of unfinished ones are those of the last state change and of what is stored by now:
-- `throughput` in generated tokens a second and `eta_seconds` are means over the whole run. Nothing is kept in files.
CREATE VIEW benchmarks AS
WITH stored AS (
    SELECT
        job_id,
        count(*) AS completed,
        coalesce(sum(output_tokens) FILTER (NOT reused), 0) AS output_tokens,
    FROM items
    WHERE job_id IN (SELECT job_id FROM jobs WHERE suite LIKE 'ds\_%' ESCAPE '\')
    GROUP BY job_id
), runs AS (
    SELECT
        j.*,
        CAST(coalesce(s.completed, 0) AS INTEGER) AS completed,
        coalesce(s.output_tokens, 0) AS output_tokens,
        coalesce(j.planned, d.count, 0) AS total,
        epoch(coalesce(j.finished_at, now() AT TIME ZONE 'UTC') - j.started_at) AS seconds,
    FROM jobs j
    LEFT JOIN stored s USING (job_id)
    LEFT JOIN datasets d ON d.id = j.suite
    WHERE j.suite LIKE 'ds\_%' ESCAPE '\'
)
SELECT
    'bm_' || replace(job_id, '-', '') AS id,
    model AS model_id,
    suite AS dataset_id,
    -- As job states go: 1 pending to 7 cancelled.
    ['pending', 'running', 'running', 'running', 'completed', 'failed', 'cancelled'][state] AS status,
    if(total > 0, CAST(least(100, 100 * completed // total) AS INTEGER), 0) AS progress,
    completed,
    total,
    CAST(if(seconds > 0, output_tokens / seconds, 0) AS FLOAT) AS throughput,
    CAST(if(finished_at IS NULL AND completed > 0, (total - completed) * seconds / completed, 0) AS INTEGER)
        AS eta_seconds,
    started_at,
    finished_at AS completed_at,
    if(finished_at IS NULL, NULL, seconds) AS total_time_seconds,
    CAST(NULL AS VARCHAR) AS results_file,
    CAST(NULL AS VARCHAR) AS metadata_file,
    created_at,
FROM runs;

-- migration 7: several jobs whose answers a job took, tokens that a provider does not tell

CREATE TABLE all_run_sources (
    job_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    PRIMARY KEY (job_id, source)
);
INSERT INTO all_run_sources FROM run_sources;
DROP TABLE run_sources;
ALTER TABLE all_run_sources RENAME TO run_sources;

-- NULL where the provider does not tell; rows stored before have 0.
ALTER TABLE items ALTER COLUMN input_tokens DROP NOT NULL;
ALTER TABLE items ALTER COLUMN output_tokens DROP NOT NULL;

-- migration 8: requests that made datasets

-- For a day, so that the same request again gives the dataset that it made. `asked` is a hash of what it asked for.
CREATE TABLE dataset_requests (
    owner VARCHAR NOT NULL,
    request_id VARCHAR NOT NULL,
    asked BLOB NOT NULL,
    dataset_id VARCHAR NOT NULL,
    made_at TIMESTAMP NOT NULL,
    PRIMARY KEY (owner, request_id)
);

-- migration 9: incomplete and invalid runs beside those that stand for their configuration

-- In current_scores `newest` 0 is a configuration's newest run that is incomplete, was invalidated, or has answers of one
-- that was, where no newer one can stand for it. Filling earlier tables may have chosen some already.
DELETE FROM current_scores WHERE newest = 0;

-- migration 10: runs that rank though many answers are unread

-- What is to be said of a score, in words, and by which rules the result was made: see job_result.RULES. Results of older
-- rules are made again when the service runs.
ALTER TABLE seals ADD COLUMN caution VARCHAR DEFAULT '';
ALTER TABLE seals ADD COLUMN rules INTEGER DEFAULT 0;

-- Had the unanswered items been as good as the answered ones; NULL where nothing is unanswered.
ALTER TABLE metrics ADD COLUMN answered_mean DOUBLE;
ALTER TABLE run_scores ADD COLUMN caution VARCHAR DEFAULT '';
ALTER TABLE run_scores ADD COLUMN answered_mean DOUBLE;

-- `newest` and `runs` stay the last columns.
CREATE TABLE current_scores_with_caution AS
SELECT * EXCLUDE (newest, runs), '' AS caution, NULL::DOUBLE AS answered_mean, newest, runs FROM current_scores;
DROP TABLE current_scores;
ALTER TABLE current_scores_with_caution RENAME TO current_scores;

-- migration 11: scores over items and over tasks

-- The rule of the suite's score on these items, as in Weighting; 0 for a single task, and until a run that says it is
-- sealed or sealed again. Averages by a rule stand beside those by the suite's own, as "score over items".
ALTER TABLE item_sets ADD COLUMN weighting UTINYINT DEFAULT 0;

-- migration 12: tool calls and log-probabilities of answers

-- JSON arrays in OpenAI's form; NULL where an answer has none.
ALTER TABLE items ADD COLUMN tool_calls VARCHAR;
ALTER TABLE items ADD COLUMN logprobs VARCHAR;

-- migration 13: calls through /v1/chat/completions and /v1/responses

-- Outcome 0 until a call has ended.
CREATE TABLE calls (
    call_id VARCHAR PRIMARY KEY,
    owner VARCHAR NOT NULL,
    endpoint VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    started_at TIMESTAMP NOT NULL,
    outcome UTINYINT NOT NULL,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cost_usd DOUBLE,
    call BLOB NOT NULL
);

-- migration 14: recorded runs

-- `run` is the serialised RecordedRun as of its end, `last_position` that of its end on USAGE.
CREATE TABLE recorded_runs (
    run_id VARCHAR PRIMARY KEY,
    owner VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    opened_at TIMESTAMP NOT NULL,
    closed_at TIMESTAMP,
    discarded BOOLEAN NOT NULL,
    last_position BIGINT NOT NULL,
    run BLOB,
    dropped_at TIMESTAMP
);

-- Until a call has ended, `run_id` is empty. `recorded` is the serialised RecordedCall.
CREATE TABLE recorded_calls (
    call_id VARCHAR PRIMARY KEY,
    owner VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    position BIGINT NOT NULL,
    endpoint VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    failed BOOLEAN NOT NULL,
    began_at TIMESTAMP NOT NULL,
    bytes BIGINT NOT NULL,
    call BLOB NOT NULL,
    recorded BLOB NOT NULL
);

-- Parts of what a call said, whose end has not come yet.
CREATE TABLE call_texts (
    call_id VARCHAR NOT NULL,
    part INTEGER NOT NULL,
    kept_at TIMESTAMP NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (call_id, part)
);

-- What other tools do not tell.
ALTER TABLE imported_answers ADD COLUMN reasoning VARCHAR DEFAULT '';
ALTER TABLE imported_answers ADD COLUMN tool_calls STRUCT(id VARCHAR, "name" VARCHAR, arguments VARCHAR)[] DEFAULT [];
ALTER TABLE imported_answers ADD COLUMN reasoning_tokens INTEGER DEFAULT 0;
ALTER TABLE imported_answers ADD COLUMN ttft_ms DOUBLE DEFAULT 0;
ALTER TABLE imported_answers ADD COLUMN cost_usd DOUBLE;
ALTER TABLE imported_answers ADD COLUMN served_model VARCHAR DEFAULT '';

-- migration 15: budgets of recorded runs

-- What the call counts in its run's budget: its cost or, while that is unknown, the most that it may be. NULL for a call
-- that the budget does not allow.
ALTER TABLE recorded_calls ADD COLUMN held_usd DOUBLE DEFAULT 0;

-- migration 16: what people prefer of several jobs' answers to a row

-- `jobs` are their ids in order, joined by commas; task, item and repeat are the row's place in the first of them.
-- `choice` as in Preference; of one author, the one with the highest number holds. 0 takes back what was said before.
CREATE TABLE preferences (
    number INTEGER PRIMARY KEY,
    jobs VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    item INTEGER NOT NULL,
    "repeat" INTEGER NOT NULL,
    custom_id VARCHAR NOT NULL,
    choice UTINYINT NOT NULL,
    preferred VARCHAR NOT NULL,
    blind BOOLEAN NOT NULL,
    author VARCHAR NOT NULL,
    judged_at TIMESTAMP NOT NULL
);
CREATE VIEW present_preferences AS
FROM preferences
QUALIFY row_number() OVER (PARTITION BY jobs, task, item, "repeat", author ORDER BY number DESC) = 1 AND choice <> 0;

-- migration 17: jobs that users deleted

-- What is left of a deleted job besides its events: whatever else names it is ignored when it comes again.
CREATE TABLE deleted_jobs (
    job_id VARCHAR PRIMARY KEY,
    owner VARCHAR NOT NULL,
    deleted_by VARCHAR NOT NULL,
    deleted_at TIMESTAMP NOT NULL
);

-- migration 18: rows that ask to judge a job's answers

-- The job whose answers they are; '' for other datasets. Lists leave such datasets out.
ALTER TABLE datasets ADD COLUMN judged_job VARCHAR DEFAULT '';

-- migration 19: what people score answers under rubrics

-- Rubrics by the SHA-256 of their JSON.
CREATE TABLE rubrics (
    number INTEGER PRIMARY KEY,
    digest VARCHAR NOT NULL,
    rubric VARCHAR NOT NULL,
    added_at TIMESTAMP NOT NULL
);

-- Every rating: `scores` is a JSON object with a score for each criterion, '' where it takes back what was said before.
-- Of one rater, the one with the highest number holds.
CREATE TABLE ratings (
    number INTEGER PRIMARY KEY,
    job_id VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    item INTEGER NOT NULL,
    "repeat" INTEGER NOT NULL,
    rubric VARCHAR NOT NULL,
    rater VARCHAR NOT NULL,
    scores VARCHAR NOT NULL,
    note VARCHAR NOT NULL,
    rated_at TIMESTAMP NOT NULL
);
CREATE VIEW present_ratings AS
FROM ratings
QUALIFY row_number() OVER (PARTITION BY job_id, task, item, "repeat", rubric, rater ORDER BY number DESC) = 1
    AND scores <> '';

-- migration 20: rows of experiments

-- The experiment whose rows they are; '' for other datasets. Lists leave such datasets out.
ALTER TABLE datasets ADD COLUMN experiment VARCHAR DEFAULT '';

-- migration 21: what MLflow got

-- The signature of what was known of a job when it was last sent, as of queries/mlflow/due.sql.
CREATE TABLE mlflow_jobs (
    job_id VARCHAR PRIMARY KEY,
    signature VARCHAR NOT NULL,
    sent_at TIMESTAMP NOT NULL
);

-- migration 22: judges outside Touchstone

-- The judge outside that gives the scores, which its user sends; '' for a person.
ALTER TABLE ratings ADD COLUMN judge VARCHAR DEFAULT '';
DROP VIEW present_ratings;
CREATE VIEW present_ratings AS
FROM ratings
QUALIFY row_number() OVER (PARTITION BY job_id, task, item, "repeat", rubric, rater, judge ORDER BY number DESC) = 1
    AND scores <> '';

-- migration 23: what the archive has

-- The signature of what was known of a job when it was last archived, as of queries/archive/due.sql; 'deleted' once the
-- job has been removed from the archive. `place` is that archive.
CREATE TABLE archived_jobs (
    job_id VARCHAR PRIMARY KEY,
    place VARCHAR NOT NULL,
    signature VARCHAR NOT NULL,
    archived_at TIMESTAMP NOT NULL
);

-- migration 24: decisions

-- The baseline's job of a decision, which has the decision's id.
ALTER TABLE jobs ADD COLUMN decides BOOLEAN DEFAULT false;

-- migration 25: items that are in the archive alone

-- Jobs whose items left the database: they are in the file `file` of the job's folder in the archive `place`, which has
-- this SHA-256. `answers` as of archive.rows.answers. `returned_at` is NULL while they are away.
CREATE TABLE archived_items (
    job_id VARCHAR PRIMARY KEY,
    place VARCHAR NOT NULL,
    file VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL,
    items INTEGER NOT NULL,
    answers VARCHAR NOT NULL,
    left_at TIMESTAMP NOT NULL,
    returned_at TIMESTAMP
);

-- By which their answers are found, as by items.identity.
CREATE TABLE archived_identities (
    job_id VARCHAR NOT NULL,
    identity UUID NOT NULL
);

-- migration 26: jobs of schedules

-- The schedule that created a job; '' for others.
ALTER TABLE jobs ADD COLUMN schedule_id VARCHAR DEFAULT '';

-- migration 27: what is known of items that are in the archive alone

-- The serialised JobResult of a job that failed or was cancelled, as its items gave it under `rules` when they left; NULL
-- for sealed jobs.
ALTER TABLE archived_items ADD COLUMN result BLOB;
ALTER TABLE archived_items ADD COLUMN rules INTEGER DEFAULT 0;

-- Whether the archive had no whole file of them when they were needed last.
ALTER TABLE archived_items ADD COLUMN lost BOOLEAN DEFAULT false;
