CREATE TABLE keys (name TEXT PRIMARY KEY, key BLOB NOT NULL) WITHOUT ROWID;
INSERT INTO keys (name, key) VALUES ('checkpoints', randomblob(32));
