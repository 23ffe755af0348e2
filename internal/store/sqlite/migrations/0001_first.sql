-- Facts of this state directory: its installation id, and the time namespace of this boot.
CREATE TABLE facts (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The last fence granted for a key. A row is never deleted and its fence never falls, so that a
-- fence is never handed out twice, whatever becomes of the lease.
CREATE TABLE fences (
	key   TEXT PRIMARY KEY,
	fence INTEGER NOT NULL CHECK (fence > 0)
) STRICT, WITHOUT ROWID;

-- The newest grant of a key. granted and expires are nanoseconds of CLOCK_BOOTTIME in that boot.
CREATE TABLE leases (
	key      TEXT PRIMARY KEY,
	fence    INTEGER NOT NULL,
	holder   TEXT NOT NULL,              -- run.Holder.ID
	identity TEXT NOT NULL,              -- run.Holder as JSON
	boot     TEXT NOT NULL,
	granted  INTEGER NOT NULL,
	expires  INTEGER NOT NULL,
	released INTEGER NOT NULL DEFAULT 0 CHECK (released IN (0, 1))
) STRICT, WITHOUT ROWID;

-- data is run.Run as JSON without its effects; the columns win over what data says.
-- created, updated and every "at" are nanoseconds of wall time since 1970.
CREATE TABLE runs (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT NOT NULL UNIQUE,
	repo     TEXT NOT NULL,
	issue    INTEGER NOT NULL,
	state    TEXT NOT NULL,
	live     INTEGER NOT NULL CHECK (live IN (0, 1)),
	revision INTEGER NOT NULL,
	fence    INTEGER NOT NULL,
	created  INTEGER NOT NULL,
	updated  INTEGER NOT NULL,
	data     TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX runs_one_live ON runs (repo, issue) WHERE live = 1;
CREATE INDEX runs_by_issue ON runs (repo, issue, seq);
CREATE INDEX runs_by_state ON runs (state, seq);

CREATE TABLE events (
	seq  INTEGER PRIMARY KEY AUTOINCREMENT,
	run  TEXT NOT NULL REFERENCES runs (id),
	at   INTEGER NOT NULL,
	kind TEXT NOT NULL,
	data TEXT NOT NULL
) STRICT;

CREATE INDEX events_by_run ON events (run, seq);

-- place orders the pending effects of a run; seq orders their history.
CREATE TABLE effects (
	seq    INTEGER PRIMARY KEY AUTOINCREMENT,
	run    TEXT NOT NULL REFERENCES runs (id),
	place  INTEGER NOT NULL,
	kind   TEXT NOT NULL,
	key    TEXT NOT NULL,
	text   TEXT NOT NULL,
	status TEXT NOT NULL CHECK (status IN ('pending', 'settled', 'withdrawn')),
	at     INTEGER NOT NULL
) STRICT;

CREATE INDEX effects_by_run ON effects (run, seq);
CREATE UNIQUE INDEX effects_pending ON effects (run, key) WHERE status = 'pending';

CREATE TABLE sessions (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	id      TEXT NOT NULL UNIQUE,
	run     TEXT NOT NULL REFERENCES runs (id),
	attempt INTEGER NOT NULL,
	kind    TEXT NOT NULL,
	handle  TEXT NOT NULL,
	dir     TEXT NOT NULL,
	log     TEXT NOT NULL,
	started INTEGER NOT NULL,
	ended   INTEGER NOT NULL CHECK (ended IN (0, 1))
) STRICT;

CREATE INDEX sessions_by_run ON sessions (run, seq);

-- What people asked for. Written without a lease: people are never fenced.
CREATE TABLE cancels (
	run    TEXT PRIMARY KEY REFERENCES runs (id),
	reason TEXT NOT NULL,
	at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
