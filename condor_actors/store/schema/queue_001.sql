-- The job queue: clusters with what their jobs share, jobs with what is their own.

CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- version: goes up when the ad is edited, so that history keeps the ad a job ended with
CREATE TABLE clusters (
    cluster INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    total INTEGER NOT NULL,
    version INTEGER NOT NULL,
    ad BLOB NOT NULL
);

CREATE TABLE jobs (
    cluster INTEGER NOT NULL,
    proc INTEGER NOT NULL,
    ad BLOB NOT NULL,
    PRIMARY KEY (cluster, proc)
) WITHOUT ROWID;

-- A claim is the right to use a slot; it outlives the runs on it.
CREATE TABLE claims (
    claim_id TEXT PRIMARY KEY,
    secret TEXT NOT NULL,
    startd TEXT NOT NULL,
    starter_node TEXT NOT NULL,
    slot_name TEXT NOT NULL,
    slot_ad BLOB NOT NULL,
    submitter TEXT NOT NULL,
    lease_s REAL NOT NULL
) WITHOUT ROWID;

-- A run that is believed to be alive: what a new shadow host needs to take it up again.
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    cluster INTEGER NOT NULL,
    proc INTEGER NOT NULL,
    owner TEXT NOT NULL,
    claim_id TEXT NOT NULL,
    began_s REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE hosts (
    host_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    pid INTEGER NOT NULL,
    birth TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE history_clusters (
    cluster INTEGER NOT NULL,
    version INTEGER NOT NULL,
    ad BLOB NOT NULL,
    PRIMARY KEY (cluster, version)
) WITHOUT ROWID;

CREATE TABLE history (
    entry INTEGER PRIMARY KEY,
    cluster INTEGER NOT NULL,
    proc INTEGER NOT NULL,
    owner TEXT NOT NULL,
    version INTEGER NOT NULL,
    ended_s REAL NOT NULL,
    ad BLOB NOT NULL
);

-- a job ends once
CREATE UNIQUE INDEX history_job ON history (cluster, proc);
