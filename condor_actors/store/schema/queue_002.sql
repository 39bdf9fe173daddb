-- Lines of user logs (and mails) that are due and whose writing no shadow host has confirmed yet.

CREATE TABLE notices (
    notice_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    cluster INTEGER NOT NULL,
    proc INTEGER NOT NULL,
    last_proc INTEGER NOT NULL,
    event INTEGER NOT NULL,
    when_s REAL NOT NULL,
    ad BLOB NOT NULL
) WITHOUT ROWID;
