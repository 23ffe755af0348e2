-- One row about the database as a whole.
-- epoch, writes: which line of history this is, and how many write transactions it has had. What is
--   known outside of the database (state.floor) is compared with both, so that an older copy is told.
-- base, reserved: every new fence is above base; none is above reserved, which is never more than
--   what state.floor has on disk.
-- boot, namespace, ahead, mark: store time is CLOCK_BOOTTIME of that boot and time namespace plus
--   ahead, in nanoseconds, and is never below mark.
CREATE TABLE ledger (
	one       INTEGER PRIMARY KEY CHECK (one = 1),
	epoch     TEXT NOT NULL,
	writes    INTEGER NOT NULL,
	base      INTEGER NOT NULL,
	reserved  INTEGER NOT NULL,
	boot      TEXT NOT NULL,
	namespace TEXT NOT NULL,
	ahead     INTEGER NOT NULL,
	mark      INTEGER NOT NULL
) STRICT;

-- A database of version 1 knows boot and time namespace, and its leases are timed without an offset.
INSERT INTO ledger (one, epoch, writes, base, reserved, boot, namespace, ahead, mark)
WITH was (boot, namespace) AS (
	SELECT substr(value, 1, instr(value, ' ') - 1), substr(value, instr(value, ' ') + 1) FROM facts WHERE name = 'time'
	UNION ALL SELECT '', '' LIMIT 1
)
SELECT 1, '', 0, 0, coalesce((SELECT max(fence) FROM fences), 0), boot, namespace, 0,
	coalesce((SELECT max(granted) FROM leases WHERE leases.boot = was.boot), 0)
FROM was;

DELETE FROM facts WHERE name = 'time';
