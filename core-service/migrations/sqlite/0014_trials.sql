-- The run is the one of those suspected of ending their processes that its process tries now.
ALTER TABLE runs ADD COLUMN on_trial BOOLEAN NOT NULL DEFAULT FALSE;
