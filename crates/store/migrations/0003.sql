-- The network between clients and subject is part of a cell: runs over two of them are no repeats of one another.
ALTER TABLE cells ADD COLUMN network TEXT;            -- name of a profile; NULL where there was no link

DROP INDEX cells_are_distinct;
CREATE UNIQUE INDEX cells_are_distinct ON cells (
    experiment_id, experiment, subject, transport, policy, clients,
    ifnull(variant, ''), ifnull(network, ''), ifnull(deliveries_per_s, -1), ifnull(payload_bytes, -1)
);

DROP VIEW figures_by_cell;
CREATE VIEW figures_by_cell AS
SELECT runs.experiment_id, runs.id AS run_id, runs.place,
       cells.experiment, cells.subject, cells.transport, cells.policy, cells.variant, cells.network,
       cells.clients, cells.deliveries_per_s, cells.payload_bytes,
       runs.repeat, figures.metric, figures.unit, figures.value, figures.bound, runs.counts
FROM figures
JOIN runs ON runs.id = figures.run_id
JOIN cells ON cells.id = runs.cell_id;
