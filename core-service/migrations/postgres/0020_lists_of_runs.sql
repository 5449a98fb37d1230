-- Lists of a workflow's runs are sorted by an id that the primary key does not sort: POSIX is the same order as C, under
-- another name. The planner takes a workflow's runs to be spread evenly over all runs, and would look for those of one that
-- has been quiet among the newest of everybody.
DROP INDEX runs_of_workflow;
DROP INDEX runs_not_succeeded;
CREATE INDEX runs_of_workflow ON runs (workflow_id, id COLLATE "POSIX");
CREATE INDEX runs_not_succeeded ON runs (workflow_id, status, id COLLATE "POSIX") WHERE status <> 'succeeded';
