-- What jobs that have ended came to, by the day, so that nobody has to look at all of them.

CREATE TABLE history_totals (
    day INTEGER NOT NULL,
    owner TEXT NOT NULL,
    outcome TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    starts INTEGER NOT NULL,
    wall_s REAL NOT NULL,
    core_s REAL NOT NULL,
    cpu_s REAL NOT NULL,
    PRIMARY KEY (day, owner, outcome)
) WITHOUT ROWID;

-- Entries from here on are in the totals; those before, of an older version, are added piece by piece.
CREATE TABLE history_summed (entry INTEGER NOT NULL);
INSERT INTO history_summed (entry) SELECT coalesce(max(entry), 0) + 1 FROM history;
