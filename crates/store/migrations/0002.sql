-- Figures with their cells, one value a row: the table that exports write, and what a question in SQL begins with.

CREATE VIEW figures_by_cell AS
SELECT runs.experiment_id, runs.id AS run_id, runs.place,
       cells.experiment, cells.subject, cells.transport, cells.policy, cells.variant,
       cells.clients, cells.deliveries_per_s, cells.payload_bytes,
       runs.repeat, figures.metric, figures.unit, figures.value, figures.bound, runs.counts
FROM figures
JOIN runs ON runs.id = figures.run_id
JOIN cells ON cells.id = runs.cell_id;

-- The list of experiments counts runs; without this it would read their documents.
CREATE INDEX runs_by_counts ON runs (experiment_id, counts);
