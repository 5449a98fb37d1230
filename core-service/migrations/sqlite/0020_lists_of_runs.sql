-- Only PostgreSQL's planner needs another index for lists of runs.
SELECT 1;
