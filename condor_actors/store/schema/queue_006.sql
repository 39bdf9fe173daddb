-- What a user's jobs were, without looking at all others: of one owner, by entry.

CREATE INDEX history_owner ON history (owner);
