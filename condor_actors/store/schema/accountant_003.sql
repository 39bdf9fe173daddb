CREATE TABLE reservations (
    name TEXT PRIMARY KEY,
    plain TEXT NOT NULL
) WITHOUT ROWID;
