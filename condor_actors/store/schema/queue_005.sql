-- Clusters whose jobs are made as they are needed: how far each is, and what the jobs are made of.

CREATE TABLE factories (
    cluster INTEGER PRIMARY KEY,
    next_proc INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    reason TEXT NOT NULL,
    edited TEXT NOT NULL
);

-- Items come before their cluster, page by page; those of a submission that was never finished go when the file is read.
CREATE TABLE items (
    cluster INTEGER NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    is_template INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (cluster, first)
) WITHOUT ROWID;
