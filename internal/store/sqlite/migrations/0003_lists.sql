-- Lists of runs begin with the newest: of one repository, and of those that are still to be driven.
-- Without these a state of very many past runs is read as a whole, or sorted, for each list.
CREATE INDEX runs_by_repo ON runs (repo, seq);
CREATE INDEX runs_live ON runs (seq) WHERE live = 1;
CREATE INDEX runs_live_by_repo ON runs (repo, seq) WHERE live = 1;
