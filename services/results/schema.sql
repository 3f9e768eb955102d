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
