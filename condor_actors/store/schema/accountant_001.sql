CREATE TABLE users (
    name TEXT PRIMARY KEY,
    priority REAL NOT NULL,
    factor REAL,
    weighted_usage_s REAL NOT NULL,
    usage_s REAL NOT NULL,
    begin_s REAL NOT NULL,
    last_s REAL NOT NULL,
    ceiling REAL NOT NULL,
    floor REAL NOT NULL,
    updated_s REAL NOT NULL
) WITHOUT ROWID;
