-- One row for each credential; the secret is sealed with the key of CREDD_KEY_FILE.
CREATE TABLE credentials (
    user TEXT NOT NULL,
    service TEXT NOT NULL,
    handle TEXT NOT NULL,
    form TEXT NOT NULL,
    scopes TEXT NOT NULL,
    audience TEXT NOT NULL,
    stored_s REAL NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (user, service, handle)
) WITHOUT ROWID;

-- A sealed text that is known: whether a key is the one of this file.
CREATE TABLE seal (sealed BLOB NOT NULL);
