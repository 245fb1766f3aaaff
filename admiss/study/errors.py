"""What can go wrong around the cells of a study; a cell that fails is a row of the table, not an error."""


class EngineError(Exception):
    """A run, a store or a worker that cannot go on: one sentence that says what to do."""
